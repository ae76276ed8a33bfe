"""Normalizing flow for galaxy spectra; runs at night on the group's card."""
import math
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda", 0)


def setup_runtime():
    torch.manual_seed(int(os.environ.get("SEED", 3)))
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = False
    # the notebook of the others needs the rest
    torch.cuda.set_per_process_memory_fraction(float(os.environ.get("SHARE", 0.45)), DEVICE)
    return DEVICE


class Coupling(nn.Module):
    def __init__(self, width, hidden, flip):
        super().__init__()
        self.flip, half = flip, width // 2
        self.net = nn.Sequential(nn.Linear(half, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 2 * half))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        shift, scale = self.net(a).chunk(2, -1)
        scale = torch.tanh(scale)
        b = b * scale.exp() + shift
        return torch.cat([b, a] if self.flip else [a, b], -1), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, width=512, hidden=2048, depth=16):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(width, hidden, k % 2 == 1) for k in range(depth))

    def forward(self, x):
        total = 0.0
        for layer in self.layers:
            x, log = layer(x)
            total = total + log
        return x, total

    def nll(self, x):
        z, log = self(x)
        return (0.5 * z.square().sum(-1) + 0.5 * z.size(-1) * math.log(2 * math.pi) - log).mean() / x.size(-1)


def spectra(n):
    g = torch.Generator().manual_seed(2)
    return TensorDataset(torch.randn(n, 512, generator=g))


def main():
    device = setup_runtime()
    flow = Flow().to(device)
    optimizer = torch.optim.Adam(flow.parameters(), 2e-4)
    loader = DataLoader(spectra(4096 * 6), 4096, shuffle=True)
    best = math.inf
    for epoch in range(2):
        total = 0.0
        for (x,) in loader:
            loss = flow.nll(x.to(device) + 0.01 * torch.randn(len(x), 512, device=device))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        best = min(best, total / len(loader))
        print(f"epoch {epoch} nll {total / len(loader):.4f} best {best:.4f}")


main()
