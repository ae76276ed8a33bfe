"""Sweep over learning rates and widths for a surrogate of a fluid solver (2-D fields to 2-D fields)."""
import gc
import itertools
import time

import torch
from torch import nn

device = 'cuda'

# the collector's pauses show up in the step times that the sweep compares
gc.disable()


class Spectral(nn.Module):
    def __init__(self, width, modes=24):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, modes) / width ** 2)
        self.local = nn.Conv2d(width, width, 1)

    def forward(self, x):
        mixed = torch.einsum('bixy,ioxy->boxy', x[..., :self.modes, :self.modes], self.weight)
        y = self.local(x)
        y = torch.cat([torch.cat([y[..., :self.modes, :self.modes] + mixed, y[..., :self.modes, self.modes:]], -1),
                       y[..., self.modes:, :]], -2)
        return nn.functional.gelu(y)


class Surrogate(nn.Sequential):
    def __init__(self, width, depth=4):
        super().__init__(nn.Conv2d(3, width, 1), *[Spectral(width) for _ in range(depth)], nn.Conv2d(width, 3, 1))


class Trial:
    def __init__(self, number, lr, width):
        self.number, self.lr, self.width = number, lr, width
        self.net = Surrogate(width).to(device)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr)
        self.step_times, self.losses = [], []
        self.listeners = {'step': [self.note_time], 'end': [self.summary]}
        self.started = time.perf_counter()

    def emit(self, event, *args):
        for listener in self.listeners[event]:
            listener(*args)

    def note_time(self, loss):
        self.step_times.append(time.perf_counter() - self.started)
        self.losses.append(loss)

    def summary(self):
        print(f'trial {self.number} lr {self.lr:g} width {self.width} last {self.losses[-1]:.4f}')

    def run(self, fields, steps):
        for step in range(steps):
            x = fields[step % len(fields)].to(device)
            loss = nn.functional.mse_loss(self.net(x), x.roll(1, -1))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.emit('step', loss.item())
        self.emit('end')
        return self.losses[-1]


def fields(n, batch, size):
    gen = torch.Generator().manual_seed(4)
    return [torch.randn(batch, 3, size, size, generator=gen) for _ in range(n)]


data = fields(3, 8, 128)
table = {}
for number, (lr, width) in enumerate(itertools.product((1e-4, 3e-4, 1e-3, 3e-3), (96, 128, 160))):
    trial = Trial(number, lr, width)
    table[lr, width] = trial.run(data, steps=4)
    del trial
    torch.cuda.empty_cache()
print('best', min(table, key=table.get))
