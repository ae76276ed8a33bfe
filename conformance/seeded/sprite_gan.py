"""Hinge GAN on 64x64 sprites with spectral normalisation."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm


class Generator(nn.Module):
    def __init__(self, latent, width):
        super().__init__()
        self.first = nn.Linear(latent, 8 * width * 16)
        layers, w = [], 8 * width
        for _ in range(3):
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(w, w // 2, 3, padding=1), nn.BatchNorm2d(w // 2),
                       nn.ReLU(inplace=True)]
            w //= 2
        layers += [nn.Upsample(scale_factor=2), nn.Conv2d(w, 3, 3, padding=1), nn.Tanh()]
        self.body = nn.Sequential(*layers)

    def forward(self, z):
        return self.body(self.first(z).unflatten(1, (-1, 4, 4)))


def critic(width):
    layers, c = [], 3
    for w in (width, 2 * width, 4 * width, 8 * width):
        layers += [spectral_norm(nn.Conv2d(c, w, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True)]
        c = w
    return nn.Sequential(*layers, nn.Flatten(), spectral_norm(nn.Linear(8 * width * 16, 1)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=64)
    ap.add_argument('--steps', type=int, default=30)
    ap.add_argument('--latent', type=int, default=128)
    ap.add_argument('--width', type=int, default=64)
    args = ap.parse_args()
    torch.manual_seed(0)
    device = 'cuda'
    g, d = Generator(args.latent, args.width).to(device), critic(args.width).to(device)
    opt_g = torch.optim.Adam(g.parameters(), 1e-4, (0.0, 0.9))
    opt_d = torch.optim.Adam(d.parameters(), 4e-4, (0.0, 0.9))
    losses = {'d': [], 'g': []}
    for step in range(args.steps):
        real = torch.rand(args.batch, 3, 64, 64).mul_(2).sub_(1).to(device)
        with torch.no_grad():
            fake = g(torch.randn(args.batch, args.latent, device=device))
        loss_d = F.relu(1 - d(real)).mean() + F.relu(1 + d(fake)).mean()
        opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        opt_d.step()

        d.requires_grad_(False)
        loss_g = -d(g(torch.randn(args.batch, args.latent, device=device))).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        d.requires_grad_(True)

        losses['d'].append(loss_d.item())
        losses['g'].append(loss_g.item())
        if step % 10 == 0:
            print(step, {k: round(v[-1], 4) for k, v in losses.items()}, flush=True)
    g.eval()
    with torch.inference_mode():
        sheet = g(torch.randn(64, args.latent, device=device)).cpu()
    print('sprites', tuple(sheet.shape))


if __name__ == '__main__':
    main()
