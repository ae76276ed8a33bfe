"""WGAN-GP on 128x128 faces."""
import argparse

import torch
from torch import nn, optim


class Generator(nn.Module):
    def __init__(self, latent=256, width=512):
        super().__init__()
        self.project = nn.Linear(latent, width * 4 * 4)
        layers = []
        ch = width
        for _ in range(5):
            out = max(ch // 2, 16)
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(ch, out, 3, padding=1),
                       nn.BatchNorm2d(out), nn.ReLU(True)]
            ch = out
        layers += [nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh()]
        self.body = nn.Sequential(*layers)
        self.width = width

    def forward(self, z):
        return self.body(self.project(z).view(z.size(0), self.width, 4, 4))


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        layers, ch = [], 3
        for i in range(5):
            layers += [nn.Conv2d(ch, width * 2 ** min(i, 3), 4, 2, 1), nn.LeakyReLU(0.2)]
            ch = width * 2 ** min(i, 3)
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(ch * 16, 1))

    def forward(self, x):
        return self.body(x)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    grad, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


class Board:
    """Collects what the dashboard shows."""

    def __init__(self):
        self.scalars = {}
        self.images = {}

    def scalar(self, tag, step, value):
        self.scalars.setdefault(tag, []).append((step, float(value)))

    def image(self, tag, step, batch):
        self.images[f"{tag}/{step:06d}"] = batch

    def latest(self, tag):
        keys = [k for k in self.images if k.startswith(tag)]
        return self.images[max(keys)] if keys else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=384)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--critic-steps", type=int, default=1)
    args = parser.parse_args()

    device = torch.device("cuda")
    gen, critic = Generator().to(device), Critic().to(device)
    opt_g = optim.Adam(gen.parameters(), lr=1e-4, betas=(0.0, 0.9))
    opt_c = optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    board = Board()

    for step in range(args.steps):
        for _ in range(args.critic_steps):
            real = torch.randn(args.batch, 3, 128, 128, device=device)
            with torch.no_grad():
                fake = gen(torch.randn(args.batch, 256, device=device))
            loss_c = critic(fake).mean() - critic(real).mean()
            loss_c = loss_c + 10.0 * gradient_penalty(critic, real, fake)
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
        samples = gen(torch.randn(args.batch, 256, device=device))
        loss_g = -critic(samples).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

        board.scalar("critic", step, loss_c.item())
        board.scalar("generator", step, loss_g.item())
        board.image("real", step, real)
        board.image("fake", step, samples.detach().clamp(-1, 1).add(1).div(2))
        if step % 5 == 0:
            print(step, board.scalars["critic"][-1], tuple(board.latest("fake").shape), flush=True)


if __name__ == "__main__":
    main()
