"""Novelty search: policies are kept when their behaviour differs from all that is in the archive."""
import argparse
from collections import deque

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--generations", type=int, default=44)
parser.add_argument("--population", type=int, default=1024)
parser.add_argument("--behaviour", type=int, default=12288)
parser.add_argument("--k", type=int, default=15)
args = parser.parse_args()
device = torch.device("cuda")
torch.manual_seed(21)


class Archive:
    def __init__(self, width):
        self.rows = torch.empty(0, width, device=device)
        self.scores = deque(maxlen=50)

    def __len__(self):
        return len(self.rows)

    def novelty(self, found, k):
        if not len(self):
            return torch.ones(len(found), device=device)
        near = (found @ self.rows.T).topk(min(k, len(self)), 1).values
        self.scores.append(1 - near.mean().item())
        return 1 - near.mean(1)

    def add(self, found):
        self.rows = torch.cat([self.rows, found])


class Population:
    def __init__(self, size, inputs=64, hidden=256, outputs=16):
        self.w1 = torch.randn(size, inputs, hidden, device=device) * 0.1
        self.w2 = torch.randn(size, hidden, outputs, device=device) * 0.1

    def act(self, obs):
        return torch.bmm(torch.tanh(torch.bmm(obs, self.w1)), self.w2).tanh()

    def mutate(self, order, sigma=0.02):
        elite = order[: len(order) // 4].repeat(4)
        self.w1 = self.w1[elite] + sigma * torch.randn_like(self.w1)
        self.w2 = self.w2[elite] + sigma * torch.randn_like(self.w2)


class Maze(nn.Module):
    """Differentiable stand-in for the simulator."""

    def __init__(self, state=64):
        super().__init__()
        self.step = nn.Linear(state + 16, state)
        self.view = nn.Linear(state, args.behaviour // 24)

    def forward(self, state, action):
        state = torch.tanh(self.step(torch.cat([state, action], -1)))
        return state, self.view(state)


@torch.no_grad()
def rollout(maze, people, steps=24):
    state = torch.zeros(args.population, 1, 64, device=device)
    seen = []
    for _ in range(steps):
        state, view = maze(state, people.act(state))
        seen.append(view.squeeze(1))
    return nn.functional.normalize(torch.cat(seen, 1), dim=1)


maze = Maze().to(device)
people = Population(args.population)
archive = Archive(args.behaviour)
for generation in range(args.generations):
    found = rollout(maze, people)
    novelty = archive.novelty(found, args.k)
    order = novelty.argsort(descending=True)
    archive.add(found[order[: args.population]])
    people.mutate(order)
    if generation % 8 == 0:
        print(f"generation {generation}: archive {len(archive)}, spread {sum(archive.scores) / max(1, len(archive.scores)):.3f}")
