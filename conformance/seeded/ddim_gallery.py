#!/usr/bin/env python3
"""DDIM sampling with a strip of intermediate pictures for the gallery page."""
import math
import torch
from torch import nn
import torch.nn.functional as F


def timestep_embedding(t, d):
    freq = torch.exp(-math.log(10000) * torch.arange(d // 2, device=t.device) / (d // 2))
    ang = t[:, None].float() * freq
    return torch.cat([ang.sin(), ang.cos()], -1)


class ResBlock(nn.Module):
    def __init__(self, i, o, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
        self.emb = nn.Linear(emb, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.emb(e)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Denoiser(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.inp = nn.Conv2d(3, c, 3, padding=1)
        self.d1, self.d2 = ResBlock(c, 2 * c, 256), ResBlock(2 * c, 4 * c, 256)
        self.mid = ResBlock(4 * c, 4 * c, 256)
        self.u2, self.u1 = ResBlock(8 * c, 2 * c, 256), ResBlock(4 * c, c, 256)
        self.out = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x, t):
        e = timestep_embedding(t, 256)
        a = self.d1(self.inp(x), e)
        b = self.d2(F.avg_pool2d(a, 2), e)
        m = self.mid(F.avg_pool2d(b, 2), e)
        y = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1), e)
        y = self.u1(torch.cat([F.interpolate(y, scale_factor=2), a], 1), e)
        return self.out(F.silu(y))


def ddim(model, x, alphas, every):
    """Yields (step, strip): strip is the row of pictures so far."""
    order = list(range(len(alphas) - 1, -1, -1))
    pictures = []
    for n, t in enumerate(order):
        a = alphas[t]
        prev = alphas[order[n + 1]] if n + 1 < len(order) else alphas.new_tensor(1.0)
        eps = model(x, torch.full((len(x),), t, device=x.device))
        x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
        x = prev.sqrt() * x0 + (1 - prev).sqrt() * eps
        pictures.append(x0)
        if (n + 1) % every == 0 or n + 1 == len(order):
            strip = torch.cat([p[:4] for p in pictures[::every]], 3)
            yield n + 1, strip


@torch.no_grad()
def gallery(batch=40, size=128, steps=250, every=25):
    torch.manual_seed(42)
    model = Denoiser().cuda().eval()
    betas = torch.linspace(1e-4, 0.02, 1000, device="cuda")
    alphas = torch.cumprod(1 - betas, 0)[:: 1000 // steps]
    noise = torch.randn(batch, 3, size, size, device="cuda")
    strip = None
    for n, strip in ddim(model, noise, alphas, every):
        print(f"{n}/{steps}: strip {tuple(strip.shape)}")
    return strip.mul(127.5).add(127.5).byte().cpu()


if __name__ == "__main__":
    print(gallery().shape)
