"""MuZero-style search over learned latents; plays a batch of boards side by side."""
import gc
import math
import random

import torch
from torch import nn
import torch.nn.functional as F

ACTIONS = 9
gc.disable()  # no pauses while searching


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.b(F.relu(self.a(x))))


class World(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.represent = nn.Sequential(nn.Conv2d(17, c, 3, padding=1), nn.ReLU(), Res(c), Res(c))
        self.mix = nn.Conv2d(c + ACTIONS, c, 3, padding=1)
        self.dynamics = nn.Sequential(Res(c), Res(c))
        self.policy = nn.Linear(c, ACTIONS)
        self.value = nn.Linear(c, 1)

    def initial(self, board):
        return self.heads(self.represent(board))

    def recurrent(self, latent, action):
        b, _, h, w = latent.shape
        plane = F.one_hot(action, ACTIONS).to(latent.dtype)[:, :, None, None].expand(b, ACTIONS, h, w)
        return self.heads(self.dynamics(self.mix(torch.cat([latent, plane], 1))))

    def heads(self, latent):
        pooled = latent.mean((2, 3))
        return latent, self.policy(pooled).softmax(-1), torch.tanh(self.value(pooled))


class Node:
    __slots__ = ("parent", "action", "latent", "prior", "value", "children", "visits")

    def __init__(self, parent, action, latent, prior, value):
        self.parent, self.action = parent, action
        self.latent, self.prior, self.value = latent, prior, value
        self.children = {}
        self.visits = 0

    def pick(self, rng):
        def score(action):
            child = self.children.get(action)
            seen = child.visits if child else 0
            return math.sqrt(self.visits + 1) / (1 + seen) + 1e-3 * rng.random()
        return max(range(ACTIONS), key=score)

    def backup(self):
        node = self
        while node is not None:
            node.visits += 1
            node = node.parent


@torch.no_grad()
def search(world, board, simulations, rng):
    root = Node(None, None, *world.initial(board))
    for _ in range(simulations):
        node = root
        action = node.pick(rng)
        while action in node.children:
            node = node.children[action]
            action = node.pick(rng)
        moves = torch.full((board.shape[0],), action, device=board.device)
        child = Node(node, action, *world.recurrent(node.latent, moves))
        node.children[action] = child
        child.backup()
    counts = [root.children[a].visits if a in root.children else 0 for a in range(ACTIONS)]
    return counts


def self_play(moves=24, boards=96, simulations=40):
    rng = random.Random(2)
    with torch.device("cuda"):
        world = World().eval()
    history = []
    for move in range(moves):
        board = torch.zeros(boards, 17, 9, 9, device="cuda")
        counts = search(world, board, simulations, rng)
        total = sum(counts)
        history.append([c / total for c in counts])
        if move % 6 == 5:
            entropy = -sum(p * math.log(p + 1e-9) for p in history[-1])
            print(f"move {move + 1}: entropy {entropy:.3f}")
    return history


if __name__ == "__main__":
    self_play()
