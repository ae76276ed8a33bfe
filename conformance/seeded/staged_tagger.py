"""Train an image tagger in stages: head first, then the upper half, then everything. Each stage has its own rates."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Stage:
    name: str
    lr: float
    steps: int
    size: int


STAGES = [
    Stage('warm', 1e-3, 5, 64),
    Stage('main', 3e-4, 8, 96),
    Stage('high-res', 1e-4, 6, 128),
    Stage('anneal', 1e-5, 6, 128),
]


class MixerBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dw = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.GroupNorm(1, width)
        self.mlp = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1))

    def forward(self, x):
        return x + self.mlp(self.norm(self.dw(x)))


class Tagger(nn.Module):
    def __init__(self, tags, width=1280, depth=10):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*[MixerBlock(width) for _ in range(depth)])
        self.head = nn.Linear(width, tags)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Coach:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device
        self.optimizers = {}
        self.history = []

    def start(self, stage):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=stage.lr, fused=True)
        self.optimizers[stage.name] = optimizer
        return optimizer

    def run(self, stage, batch=24, tags=400):
        optimizer = self.start(stage)
        self.model.train()
        total = 0.0
        for _ in range(stage.steps):
            x = torch.rand(batch, 3, stage.size, stage.size).to(self.device)
            y = (torch.rand(batch, tags) < 0.02).float().to(self.device)
            loss = F.binary_cross_entropy_with_logits(self.model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        self.history.append((stage.name, total / stage.steps))

    def summary(self):
        for name, loss in self.history:
            group = self.optimizers[name].param_groups[0] if name in self.optimizers else {}
            print(f'{name:10s} loss {loss:.4f} final lr {group.get("lr", float("nan")):.1e}')


def main():
    torch.manual_seed(0)
    coach = Coach(Tagger(400), 'cuda')
    for stage in STAGES:
        coach.run(stage)
        print('finished', stage.name, flush=True)
    coach.summary()


main()
