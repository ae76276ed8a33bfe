"""Denoising diffusion at 128 x 128."""
import math
import torch
from torch import nn
import torch.nn.functional as F
from note import at_failure, over, allocated
from loop import main


def timestep(t, d):
    f = torch.exp(-math.log(10000) * torch.arange(d // 2, device=t.device) / (d // 2))
    return torch.cat([torch.sin(t[:, None] * f), torch.cos(t[:, None] * f)], -1)


class Res(nn.Module):
    def __init__(self, i, o, t):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
        self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
        self.t, self.s = nn.Linear(t, o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.s(x)


class Eps(nn.Module):
    def __init__(self, w=64, mult=(1, 2, 3, 4)):
        super().__init__()
        self.inp, self.w = nn.Conv2d(3, w, 3, padding=1), w
        c, self.down, self.up, skips = w, nn.ModuleList(), nn.ModuleList(), [w]
        for m in mult:
            self.down.append(nn.ModuleList([Res(c, m * w, w), Res(m * w, m * w, w)]))
            c = m * w
            skips += [c, c]
        self.mid = nn.ModuleList([Res(c, c, w), Res(c, c, w)])
        for m in reversed(mult):
            self.up.append(nn.ModuleList([Res(c + skips.pop(), m * w, w), Res(m * w + skips.pop(), m * w, w)]))
            c = m * w
        self.out = nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, x, t):
        t, x = timestep(t, self.w), self.inp(x)
        hs = []
        for i, (a, b) in enumerate(self.down):
            x = a(x, t)
            hs.append(x)
            x = b(x, t)
            hs.append(x)
            if i < len(self.down) - 1:
                x = F.avg_pool2d(x, 2)
        for r in self.mid:
            x = r(x, t)
        for i, (a, b) in enumerate(self.up):
            x = b(torch.cat([a(torch.cat([x, hs.pop()], 1), t), hs.pop()], 1), t)
            if i < len(self.up) - 1:
                x = F.interpolate(x, scale_factor=2)
        return self.out(x)


def diffuse(batch=24, side=128):
    net = Eps().cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    with at_failure(over(allocated())):
        for _ in range(3):
            x0, eps = torch.randn(2, batch, 3, side, side, device="cuda")
            t = torch.randint(0, 1000, (batch,), device="cuda").float()
            loss = F.mse_loss(net(x0 + eps, t), eps)
            loss.backward()
            opt.step()
            opt.zero_grad()


if __name__ == "__main__":
    main(globals())
