"""Grid weather nowcasting on the lab's machine."""
import importlib

import torch
from torch import nn
import torch.nn.functional as F

lab = importlib.import_module("lab_weather_lib")


class WideConv(nn.Module):
    """Looks far along a circle of latitude."""

    def __init__(self, c, reach):
        super().__init__()
        self.reach = reach
        self.depth = nn.Conv2d(c, c, (5, 2 * reach + 1), groups=c)
        self.norm = nn.GroupNorm(8, c)

    def forward(self, x):
        x = F.pad(x, (self.reach, self.reach, 0, 0), mode="circular")
        x = F.pad(x, (0, 0, 2, 2))
        return self.norm(self.depth(x))


class Nowcaster(nn.Module):
    def __init__(self, fields=12, c=48, depth=4, reach=7):
        super().__init__()
        self.lift = nn.Conv2d(fields, c, 1)
        self.wide = nn.ModuleList(WideConv(c, reach) for _ in range(depth))
        self.point = nn.ModuleList(nn.Conv2d(c, c, 1) for _ in range(depth))
        self.out = nn.Sequential(nn.Conv2d(c, 96, 1), nn.GELU(), nn.Conv2d(96, fields, 1))

    def forward(self, x):
        x = self.lift(x)
        for w, p in zip(self.wide, self.point):
            x = F.gelu(w(x) + p(x))
        return self.out(x)


def main():
    device = lab.claim()
    net = Nowcaster().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    lat = torch.cos(torch.linspace(-1.57, 1.57, 256, device=device)).clamp(min=0.01).view(1, 1, -1, 1)
    for hour in range(15):
        now = torch.randn(8, 12, 256, 256, device=device)
        later = now.roll(1, -1)
        loss = ((net(now) - later).square() * lat).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if hour % 5 == 4:
            print(f"{lab.stamp()} {hour + 1}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
