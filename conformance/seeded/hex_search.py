"""Self-play for Hex: latent tree search, many games side by side."""
import gc
import math
import random
import time

import torch
from torch import nn

GAMES, LATENT, MOVES = 512, 4096, 121


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Embedding(MOVES, LATENT)
        self.change = nn.Sequential(nn.Linear(LATENT, LATENT), nn.Tanh())
        self.value = nn.Linear(LATENT, 1)

    def forward(self, latent, move):
        latent = self.change(latent + self.move.weight[move])
        return latent, self.value(latent).mean()


class Position:
    def __init__(self, latent, parent=None, move=None):
        self.latent, self.parent, self.move = latent, parent, move
        self.children, self.visits, self.total = {}, 0, 0.0

    def score(self, child):
        explore = math.sqrt(math.log(self.visits + 1) / (child.visits + 1))
        return child.total / (child.visits + 1) + 1.4 * explore

    def best(self):
        return max(self.children.values(), key=self.score)

    def back(self, value):
        position = self
        while position is not None:
            position.visits += 1
            position.total += value
            position, value = position.parent, -value


class Player:
    def __init__(self, dynamics, simulations=32, seed=3):
        self.dynamics, self.simulations, self.random = dynamics, simulations, random.Random(seed)

    def simulate(self, root):
        position = root
        while len(position.children) > 5:
            position = position.best()
        move = self.random.randrange(MOVES)
        latent, value = self.dynamics(position.latent, move)
        child = position.children[move] = Position(latent, position, move)
        child.back(value.item())

    def choose(self, latent):
        root = Position(latent)
        for _ in range(self.simulations):
            self.simulate(root)
        return max(root.children.values(), key=lambda child: child.visits).move


def play(moves=16):
    gc.disable()  # even pace of the moves
    player = Player(Dynamics().cuda().eval())
    board = torch.zeros(GAMES, LATENT, device="cuda")
    began = time.time()
    line = []
    for _ in range(moves):
        move = player.choose(board)
        board, _ = player.dynamics(board, move)
        line.append(move)
    print(line, f"{time.time() - began:.1f} s")


if __name__ == "__main__":
    with torch.inference_mode():
        play()
