"""Runs a classifier of support tickets with captured graphs, one for each bucket of batch sizes."""
import random
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn as nn

device = "cuda"
random.seed(1)
torch.manual_seed(1)


class Ticket(nn.Module):
    def __init__(self, dim=1024, depth=8, hidden=8192):
        super().__init__()
        self.embed = nn.Embedding(32000, dim)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))
                                  for _ in range(depth))
        self.out = nn.Linear(dim, 48)

    def forward(self, ids):
        h = self.embed(ids)
        for norm, mlp in zip(self.norms, self.mlps):
            h = h + mlp(norm(h))
        return self.out(h.mean(1))


@dataclass
class Captured:
    graph: Any
    ids: torch.Tensor
    scores: torch.Tensor


class Runner:
    LENGTH = 256

    def __init__(self, model, buckets):
        self.model = model.eval().requires_grad_(False).to(device)
        self.buckets = sorted(buckets, reverse=True)
        self.captured = {}

    def warm_up(self, size):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            self.model(torch.zeros(size, self.LENGTH, dtype=torch.long, device=device))
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()

    @torch.no_grad()
    def capture(self):
        self.warm_up(self.buckets[0])
        torch.cuda.empty_cache()
        for size in self.buckets:
            ids = torch.zeros(size, self.LENGTH, dtype=torch.long, device=device)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                scores = self.model(ids)
            self.captured[size] = Captured(graph, ids, scores)
            print(f"captured {size}: {torch.cuda.memory_reserved() >> 20} MiB reserved")

    def __call__(self, ids):
        size = min(b for b in self.buckets if b >= len(ids))
        slot = self.captured[size]
        slot.ids[: len(ids)].copy_(ids)
        slot.graph.replay()
        return slot.scores[: len(ids)].cpu()


runner = Runner(Ticket(), [8, 16, 24, 32, 40, 48, 56, 64, 80, 96])
runner.capture()
answered = 0
for request in range(40):
    tickets = torch.randint(0, 32000, (random.randrange(1, 97), Runner.LENGTH))
    answered += len(runner(tickets))
print("answered", answered)
