"""Multi-resolution hash grid radiance field, one synthetic scene."""
from collections import deque

import torch
from torch import nn
import torch.nn.functional as F


class HashGrid(nn.Module):
    primes = (1, 2654435761, 805459861)

    def __init__(self, levels=8, log2=19, dim=2, coarse=16, fine=1024):
        super().__init__()
        growth = (fine / coarse) ** (1 / (levels - 1))
        self.res = [int(coarse * growth ** i) for i in range(levels)]
        self.size = 2 ** log2
        self.table = nn.Parameter(torch.empty(levels, self.size, dim, device="cuda").uniform_(-1e-4, 1e-4))

    def forward(self, xyz):
        out = []
        for level, res in enumerate(self.res):
            scaled = xyz * res
            low = scaled.floor()
            frac = scaled - low
            low = low.long()
            feat = 0
            for corner in range(8):
                bit = [(corner >> i) & 1 for i in range(3)]
                h, w = 0, 1.0
                for i in range(3):
                    h = h ^ ((low[:, i] + bit[i]) * self.primes[i])
                    w = w * (frac[:, i] if bit[i] else 1 - frac[:, i])
                feat = feat + w[:, None] * self.table[level][h % self.size]
            out.append(feat)
        return torch.cat(out, -1)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = HashGrid()
        self.density = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
        self.colour = nn.Sequential(nn.Linear(19, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, xyz, direction):
        h = self.density(self.grid(xyz))
        rgb = torch.sigmoid(self.colour(torch.cat([h, direction], -1)))
        return F.softplus(h[:, 0] - 1), rgb


def composite(sigma, rgb, delta):
    alpha = 1 - torch.exp(-sigma * delta)
    trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    weight = alpha * trans
    return (weight[..., None] * rgb).sum(1), weight.sum(1)


def render(field, origin, direction, samples=48, near=0.05, far=1.5):
    rays = origin.shape[0]
    t = torch.linspace(near, far, samples, device=origin.device).expand(rays, samples)
    t = t + torch.rand_like(t) * (far - near) / samples
    xyz = (origin[:, None] + direction[:, None] * t[..., None]).clamp(0, 0.999)
    sigma, rgb = field(xyz.flatten(0, 1), direction[:, None].expand(rays, samples, 3).flatten(0, 1))
    delta = torch.full_like(t, (far - near) / samples)
    return composite(sigma.view(rays, samples), rgb.view(rays, samples, 3), delta)


def random_rays(n):
    origin = torch.rand(n, 3, device="cuda")
    direction = F.normalize(torch.randn(n, 3, device="cuda"), dim=-1)
    return origin, direction, torch.rand(n, 3, device="cuda")


field = Field().cuda()
opt = torch.optim.Adam(field.parameters(), 1e-2, eps=1e-15, fused=True)
recent = deque(maxlen=3)
psnr = []
for step in range(8):
    origin, direction, wanted = random_rays(8192)
    colour, opacity = render(field, origin, direction)
    loss = F.huber_loss(colour, wanted, delta=0.1) + 1e-3 * opacity.mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    psnr.append(loss.item())
    recent.append(colour.detach())

field.eval()
with torch.no_grad():
    picture = []
    for _ in range(2):
        origin, direction, _ = random_rays(4096)
        picture.append(render(field, origin, direction)[0].cpu())
print(torch.cat(picture).shape, torch.stack(list(recent)).mean().item(), psnr[-1])
