"""Samples pictures step by step; a forum said to clean after every step."""
import gc
import torch
from torch import nn
from loop import main


class Denoiser(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.i, self.o = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.mid = nn.ModuleList(nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1)) for _ in range(8))

    def forward(self, x):
        x = self.i(x)
        for m in self.mid:
            x = x + m(x)
        return self.o(x)


def clean():
    gc.collect()
    torch.cuda.empty_cache()


@torch.no_grad()
def sample(n=8, steps=40):
    net = Denoiser().cuda().eval()
    x = torch.randn(n, 4, 128, 128, device="cuda")
    for t in reversed(range(steps)):
        eps = torch.cat([net(x), net(x)]).chunk(2)
        x = x - (eps[1] + 3.0 * (eps[0] - eps[1])) / steps
        del eps
        clean()


if __name__ == "__main__":
    main(globals())
