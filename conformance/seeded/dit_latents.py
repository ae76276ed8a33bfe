"""Train a DiT on 32x32x4 latents; the weights are averaged with three decays to choose from afterwards."""
import argparse
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def modulate(x, shift, scale):
    return x * (1 + scale[:, None]) + shift[:, None]


class DiTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate='tanh'), nn.Linear(4 * width, width))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, cond):
        s1, c1, g1, s2, c2, g2 = self.ada(cond).chunk(6, 1)
        b, t, w = x.shape
        q, k, v = self.qkv(modulate(self.norm1(x), s1, c1)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, w)
        x = x + g1[:, None] * self.out(a)
        return x + g2[:, None] * self.mlp(modulate(self.norm2(x), s2, c2))


class DiT(nn.Module):
    def __init__(self, width=1024, depth=10, heads=16, patch=2, channels=4):
        super().__init__()
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, 256, width))
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(depth))
        self.final = nn.Linear(width, patch * patch * channels)

    def forward(self, x, t):
        freqs = torch.exp(-math.log(10000) * torch.arange(128, device=x.device) / 128)
        angle = t[:, None] * freqs
        cond = self.time(torch.cat([angle.cos(), angle.sin()], 1))
        h = self.embed(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            h = block(h, cond)
        return F.pixel_shuffle(self.final(h).transpose(1, 2).unflatten(2, (16, 16)), 2)


class Averages:
    def __init__(self, model, decays):
        self.shadow = {d: copy.deepcopy(model).eval().requires_grad_(False) for d in decays}

    @torch.no_grad()
    def update(self, model):
        for decay, shadow in self.shadow.items():
            for s, p in zip(shadow.parameters(), model.parameters()):
                s.lerp_(p.to(s.device), 1 - decay)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=8)
    ap.add_argument('--steps', type=int, default=8)
    ap.add_argument('--decays', type=float, nargs='+', default=[0.99, 0.999, 0.9999])
    args = ap.parse_args()
    torch.manual_seed(0)
    device = torch.device('cuda')
    model = DiT().to(device)
    averages = Averages(model, args.decays)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    betas = torch.linspace(1e-4, 0.02, 1000)
    alphas = (1 - betas).cumprod(0)
    for step in range(args.steps):
        x0 = torch.randn(args.batch, 4, 32, 32).to(device)
        t = torch.randint(0, 1000, (args.batch,))
        a = alphas[t].view(-1, 1, 1, 1).to(device)
        noise = torch.randn_like(x0)
        noisy = a.sqrt() * x0 + (1 - a).sqrt() * noise
        loss = F.mse_loss(model(noisy, t.to(device).float()), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        averages.update(model)
        print(step, f'{loss.item():.4f}', flush=True)


if __name__ == '__main__':
    main()
