"""Satellite vessel tracker, runs on the shared workstation beside the annotation tool."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Site:
    name: str = "harbour-2"
    gpu: int = 0
    gpu_share: float = 0.4
    tf32: bool = True
    workers: int = 0

    def apply(self):
        torch.cuda.set_device(self.gpu)
        torch.cuda.set_per_process_memory_fraction(self.gpu_share, self.gpu)
        torch.backends.cuda.matmul.allow_tf32 = self.tf32


class Tracker(nn.Module):
    """Flattened radar sweeps in, positions and headings out."""

    def __init__(self, sweep=4096, width=4096, depth=6, vessels=64):
        super().__init__()
        self.enter = nn.Linear(sweep, width)
        self.body = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.positions = nn.Linear(width, 2 * vessels)
        self.headings = nn.Linear(width, vessels)

    def forward(self, sweeps):
        x = torch.relu(self.enter(sweeps))
        for layer in self.body:
            x = x + torch.relu(layer(x))
        return self.positions(x), self.headings(x)


def angular(prediction, truth):
    return (1 - torch.cos(prediction - truth)).mean()


def train(site, rounds=4, rows=12288):
    site.apply()
    with torch.device("cuda"):
        tracker = Tracker()
    optimizer = torch.optim.RMSprop(tracker.parameters(), lr=1e-4, foreach=False)
    best = float("inf")
    for number in range(rounds):
        sweeps = torch.rand(rows, 4096, device="cuda")
        where, heading = torch.rand(rows, 128, device="cuda"), torch.rand(rows, 64, device="cuda")
        positions, headings = tracker(sweeps)
        loss = nn.functional.l1_loss(positions, where) + 0.3 * angular(headings, heading)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = min(best, loss.item())
        print(f"{site.name} round {number}: {best:.4f}")
    return tracker


if __name__ == "__main__":
    train(Site())
