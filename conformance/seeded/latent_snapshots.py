"""Denoising diffusion on latents, with an average of the weights for sampling and the best snapshots kept."""
import argparse
import copy
import heapq

import torch
import torch.nn.functional as F
from torch import nn

device = 'cuda'


class TimeBlock(nn.Module):
    def __init__(self, c, t):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(16, c), nn.GroupNorm(16, c)
        self.conv1, self.conv2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
        self.time = nn.Linear(t, c)

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(t)[..., None, None]
        return x + self.conv2(F.silu(self.norm2(y)))


class Denoiser(nn.Module):
    def __init__(self, c=640, depth=9, t=512):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(1, t), nn.SiLU(), nn.Linear(t, t))
        self.inp, self.out = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.blocks = nn.ModuleList(TimeBlock(c, t) for _ in range(depth))

    def forward(self, x, t):
        t = self.embed(t[:, None])
        x = self.inp(x)
        for block in self.blocks:
            x = block(x, t)
        return self.out(x)


class Average:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for mine, new in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(new, 1 - self.decay)


class TopSnapshots:
    """The k best states seen so far, as a heap of (-loss, epoch, state)."""

    def __init__(self, k=6):
        self.k, self.heap = k, []

    def consider(self, loss, epoch, module):
        state = {name: value.detach().clone() for name, value in module.state_dict().items()}
        entry = (-loss, epoch, state)
        if len(self.heap) < self.k:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)

    def best(self):
        return max(self.heap)[2]


def loss_of(model, latent, noise, t):
    a = torch.cos(t * 1.5708)[:, None, None, None]
    return F.mse_loss(model(a * latent + (1 - a ** 2).sqrt() * noise, t), noise)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--epochs', type=int, default=7)
    ap.add_argument('--steps', type=int, default=3)
    ap.add_argument('--batch', type=int, default=8)
    args = ap.parse_args()
    gen = torch.Generator().manual_seed(2)
    model = Denoiser().to(device)
    average = Average(model)
    top = TopSnapshots()
    opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    for epoch in range(args.epochs):
        for _ in range(args.steps):
            latent = torch.randn(args.batch, 4, 32, 32, generator=gen).to(device)
            t = torch.rand(args.batch, generator=gen).to(device)
            loss = loss_of(model, latent, torch.randn_like(latent), t)
            opt.zero_grad()
            loss.backward()
            opt.step()
            average.update(model)
        with torch.no_grad():
            probe = torch.randn(args.batch, 4, 32, 32, generator=gen).to(device)
            value = loss_of(average.model, probe, torch.randn_like(probe), t).item()
        top.consider(value - epoch * 1e-3, epoch, average.model)
        print(f'epoch {epoch} loss {loss.item():.4f} average {value:.4f} kept {len(top.heap)}')
    average.model.load_state_dict(top.best())


if __name__ == '__main__':
    main()
