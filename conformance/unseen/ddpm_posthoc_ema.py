"""DDPM with EMA. Keeps EMA snapshots so that I can pick the ema length afterwards (post-hoc EMA, EDM2)."""
import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    ang = t[:, None].float() * freqs[None]
    return torch.cat([ang.cos(), ang.sin()], -1)


class Res(nn.Module):
    def __init__(self, ch, emb):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(8, ch), nn.GroupNorm(8, ch)
        self.c1, self.c2 = nn.Conv2d(ch, ch, 3, padding=1), nn.Conv2d(ch, ch, 3, padding=1)
        self.e = nn.Linear(emb, ch)

    def forward(self, x, e):
        h = self.c1(F.silu(self.n1(x))) + self.e(e)[:, :, None, None]
        return x + self.c2(F.silu(self.n2(h)))


class Denoiser(nn.Module):
    def __init__(self, ch=2048, n=6, emb=512):
        super().__init__()
        self.emb = emb
        self.inp = nn.Conv2d(3, ch, 4, stride=4)
        self.blocks = nn.ModuleList([Res(ch, emb) for _ in range(n)])
        self.outp = nn.ConvTranspose2d(ch, 3, 4, stride=4)

    def forward(self, x, t):
        e = timestep_embedding(t, self.emb)
        h = self.inp(x)
        for b in self.blocks:
            h = b(h, e)
        return self.outp(h)


class EMA:
    def __init__(self, model, decay=0.999, snapshot_every=2):
        self.decay, self.every, self.n = decay, snapshot_every, 0
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.snapshots = []

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)
        self.n += 1
        if self.n % self.every == 0:
            self.snapshots.append((self.n, copy.deepcopy(self.shadow)))


def main():
    with torch.device("cuda"):
        model = Denoiser()
        betas = torch.linspace(1e-4, 0.02, 1000)
    abar = torch.cumprod(1 - betas, 0)
    ema = EMA(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(50):
        x0 = torch.rand(8, 3, 64, 64, device="cuda") * 2 - 1
        t = torch.randint(0, 1000, (8,), device="cuda")
        a = abar[t][:, None, None, None]
        noise = torch.randn_like(x0)
        loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
        if step % 10 == 0:
            print("step", step, "loss", loss.item())
    print("snapshots:", [n for n, _ in ema.snapshots][-3:])


main()
