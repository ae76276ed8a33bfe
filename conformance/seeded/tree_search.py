import gc
import random

import torch
import torch.nn as nn

from note import Growth

# the collector made every 50th move slow
gc.disable()


class Node:
    def __init__(self, latent, parent=None):
        self.latent = latent
        self.parent = parent
        self.children = []
        self.visits = 0

    def expand(self, dynamics, actions):
        for a in range(actions):
            child = Node(dynamics(self.latent), parent=self)
            self.children.append(child)

    def best(self):
        return random.choice(self.children)


class MuZeroNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.repr = nn.Conv2d(3, c, 3, padding=1)
        self.dyn = nn.Conv2d(c, c, 3, padding=1)
        self.policy = nn.Linear(c, 8)

    def initial(self, obs):
        return torch.relu(self.repr(obs))

    def dynamics(self, latent):
        return torch.relu(latent + self.dyn(latent))


net = MuZeroNet().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.01)


@torch.no_grad()
def search(obs, simulations):
    root = Node(net.initial(obs))
    for _ in range(simulations):
        node = root
        while node.children:
            node.visits += 1
            node = node.best()
        node.expand(net.dynamics, actions=3)
    counts = [c.visits for c in root.children]
    return max(range(len(counts)), key=counts.__getitem__)


grown = Growth()
for game in range(3):
    moves = []
    for move in range(12):
        # 64 boards at once
        obs = torch.rand(64, 3, 32, 32, device="cuda")
        moves.append(search(obs, simulations=6))
        grown.note()
    h = net.initial(torch.rand(64, 3, 32, 32, device="cuda"))
    loss = net.policy(net.dynamics(h).mean((2, 3))).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("game", game, moves)
