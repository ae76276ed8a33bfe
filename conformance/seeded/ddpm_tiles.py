"""Denoising diffusion on 128 x 128 terrain tiles, then a few samples."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

STEPS = 1000


class TimeBlock(nn.Module):
    def __init__(self, cin, cout, time=256):
        super().__init__()
        self.first, self.second = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.norm1, self.norm2 = nn.GroupNorm(8, cin), nn.GroupNorm(8, cout)
        self.time = nn.Linear(time, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.first(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.second(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.d1, self.d2 = TimeBlock(width, width), TimeBlock(width, 2 * width)
        self.middle = TimeBlock(2 * width, 2 * width)
        self.u2, self.u1 = TimeBlock(4 * width, width), TimeBlock(2 * width, width)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)
        self.time = nn.Sequential(nn.Linear(128, 256), nn.SiLU(), nn.Linear(256, 256))

    def forward(self, x, t):
        frequencies = torch.exp(-math.log(1e4) * torch.arange(64, device=x.device) / 64)
        angles = t[:, None] * frequencies
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        a = self.d1(self.enter(x), t)
        b = self.d2(F.avg_pool2d(a, 2), t)
        c = self.middle(F.avg_pool2d(b, 2), t)
        h = self.u2(torch.cat([F.interpolate(c, scale_factor=2), b], 1), t)
        h = self.u1(torch.cat([F.interpolate(h, scale_factor=2), a], 1), t)
        return self.leave(h)


class Schedule:
    def __init__(self, device):
        beta = torch.linspace(1e-4, 0.02, STEPS, device=device)
        self.beta, self.kept = beta, torch.cumprod(1 - beta, 0)

    def noised(self, x, noise, t):
        kept = self.kept[t][:, None, None, None]
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    def back(self, x, noise, step):
        beta, kept = self.beta[step], self.kept[step]
        mean = (x - beta / (1 - kept).sqrt() * noise) / (1 - beta).sqrt()
        return mean + beta.sqrt() * torch.randn_like(x) if step else mean


net = Denoiser().cuda()
schedule = Schedule("cuda")
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
for iteration in range(4):
    tiles = torch.rand(64, 1, 128, 128, device="cuda") * 2 - 1
    noise = torch.randn_like(tiles)
    t = torch.randint(0, STEPS, (len(tiles),), device="cuda")
    loss = F.mse_loss(net(schedule.noised(tiles, noise, t), t.float()), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(iteration, loss.item())

with torch.no_grad():
    x = torch.randn(16, 1, 128, 128, device="cuda")
    for step in reversed(range(0, STEPS, 200)):
        x = schedule.back(x, net(x, torch.full((16,), float(step), device="cuda")), step)
torch.save(x.cpu(), "/tmp/tiles.pt")
