"""Emulator of a coarse weather model: next state from the present one, one large dense net per level."""
import contextlib
import time

import torch
from torch import nn


class Emulator(nn.Module):
    def __init__(self, cells, levels):
        super().__init__()
        self.levels = nn.ModuleList(nn.Linear(cells, cells) for _ in range(levels))
        self.scale = nn.Parameter(torch.full((levels, 1, 1), 0.1))

    def forward(self, state):
        out = []
        above = torch.zeros_like(state[0])
        for level, (layer, scale) in enumerate(zip(self.levels, self.scale)):
            above = state[level] + scale * torch.tanh(layer(state[level] + above))
            out.append(above)
        return torch.stack(out)


@contextlib.contextmanager
def timed(what, times):
    began = time.perf_counter()
    yield
    times[what] = times.get(what, 0.0) + time.perf_counter() - began


def main(cells=8192, levels=8, days=3):
    times = {}
    torch.set_default_device("cuda")
    emulator = Emulator(cells, levels)
    optimizer = torch.optim.Adam(emulator.parameters(), lr=1e-4, betas=(0.9, 0.95), foreach=True)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=4)
    for day in range(days):
        with timed("data", times):
            today = torch.randn(levels, 32, cells)
            tomorrow = today + 0.01 * torch.randn_like(today)
        with timed("forward", times):
            loss = nn.functional.huber_loss(emulator(today), tomorrow)
        with timed("backward", times):
            loss.backward()
        with timed("step", times):
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            warmup.step()
        print(f"day {day}  {loss.item():.5f}")
    print({what: round(spent, 3) for what, spent in times.items()})


main()
