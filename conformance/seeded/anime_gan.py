# 64x64 GAN with lazy R1, adapted from my StyleGAN notes
from dataclasses import dataclass, field
import itertools
import torch
from torch import nn, autograd
import torch.nn.functional as F

torch.manual_seed(0)
dev = "cuda"


@dataclass
class Curves:
    d: list = field(default_factory=list)
    g: list = field(default_factory=list)
    r1: list = field(default_factory=list)

    def tail(self, n=50):
        return {k: float(sum(v[-n:])) / max(1, len(v[-n:])) for k, v in vars(self).items()}


class G(nn.Module):
    def __init__(self, z=128, c=64):
        super().__init__()
        def up(i, o):
            return [nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]
        self.net = nn.Sequential(
            nn.ConvTranspose2d(z, c * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(c * 8), nn.ReLU(True),
            *up(c * 8, c * 4), *up(c * 4, c * 2), *up(c * 2, c),
            nn.ConvTranspose2d(c, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(z[:, :, None, None])


class D(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.a = nn.Conv2d(3, c, 3, 1, 1)
        self.b = nn.Conv2d(c, c, 4, 2, 1)
        self.c = nn.Conv2d(c, c * 2, 4, 2, 1)
        self.d = nn.Conv2d(c * 2, c * 4, 4, 2, 1)
        self.e = nn.Conv2d(c * 4, c * 8, 4, 2, 1)
        self.out = nn.Conv2d(c * 8, 1, 4)

    def forward(self, x):
        for conv in (self.a, self.b, self.c, self.d, self.e):
            x = F.softplus(conv(x))
        return self.out(x).flatten()


def loader(n, bs):
    for _ in range(n):
        yield torch.randn(bs, 3, 64, 64, device=dev).clamp_(-1, 1)


gen, disc = G().to(dev), D().to(dev)
opt_g = torch.optim.Adam(gen.parameters(), 2e-4, (0.0, 0.99))
opt_d = torch.optim.Adam(disc.parameters(), 2e-4, (0.0, 0.99))
curves = Curves()
R1_EVERY, GAMMA = 16, 10.0

for it, real in enumerate(loader(120, 64)):
    real.requires_grad_(True)
    fake = gen(torch.randn(64, 128, device=dev))
    s_real, s_fake = disc(real), disc(fake.detach())
    d_loss = F.softplus(-s_real).mean() + F.softplus(s_fake).mean()
    grad, = autograd.grad(disc(real).sum(), real, create_graph=True)
    r1 = grad.square().sum((1, 2, 3)).mean()
    if it % R1_EVERY == 0:
        d_loss = d_loss + GAMMA / 2 * R1_EVERY * r1
    opt_d.zero_grad(set_to_none=True)
    d_loss.backward()
    opt_d.step()

    g_loss = F.softplus(-disc(fake)).mean()
    opt_g.zero_grad(set_to_none=True)
    g_loss.backward()
    opt_g.step()

    curves.d.append(d_loss.item())
    curves.g.append(g_loss.item())
    curves.r1.append(r1)
    if it % 30 == 29:
        print(it + 1, {k: round(v, 4) for k, v in curves.tail().items()})

with torch.no_grad():
    grid = gen(torch.randn(16, 128, device=dev)).cpu()
print("samples", tuple(grid.shape))
