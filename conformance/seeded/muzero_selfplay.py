import math
from collections import namedtuple

import numpy as np
import torch
import torch.nn as nn

DEVICE = 'cuda'
GAMES = 256          # games that are played side by side
PLANES = 128
BOARD = 9
ACTIONS = 12
SIMULATIONS = 24
MOVES = 24

Out = namedtuple('Out', 'state reward policy value')


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
        self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + x)


class MuZeroNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.represent = nn.Sequential(nn.Conv2d(8, PLANES, 3, padding=1), *[ResBlock(PLANES) for _ in range(8)])
        self.dynamics = nn.Sequential(nn.Conv2d(PLANES + 1, PLANES, 3, padding=1), *[ResBlock(PLANES) for _ in range(8)])
        self.policy = nn.Sequential(nn.Conv2d(PLANES, 2, 1), nn.Flatten(), nn.Linear(2 * BOARD * BOARD, ACTIONS))
        self.value = nn.Sequential(nn.Conv2d(PLANES, 1, 1), nn.Flatten(), nn.Linear(BOARD * BOARD, 1))
        self.reward = nn.Sequential(nn.Conv2d(PLANES, 1, 1), nn.Flatten(), nn.Linear(BOARD * BOARD, 1))

    def initial(self, obs):
        s = self.represent(obs)
        return Out(s, None, self.policy(s).softmax(1).cpu().numpy(), self.value(s).mean().item())

    def recurrent(self, state, action):
        plane = torch.full_like(state[:, :1], action / ACTIONS)
        s = self.dynamics(torch.cat([state, plane], 1))
        return Out(s, self.reward(s).mean().item(), self.policy(s).softmax(1).cpu().numpy(), self.value(s).mean().item())


class Node:
    def __init__(self, prior, parent=None, action=None):
        self.prior = prior
        self.parent = parent
        self.action = action
        self.children = {}
        self.visits = 0
        self.total = 0.0
        self.state = None

    def expand(self, out):
        self.state = out.state
        for a, p in enumerate(out.policy.mean(0)):
            self.children[a] = Node(float(p), parent=self, action=a)

    def select(self, rng):
        def score(c):
            q = c.total / c.visits if c.visits else 0.0
            return q + c.prior * math.sqrt(self.visits + 1) / (1 + c.visits) + 1e-3 * rng.random()
        return max(self.children.values(), key=score)

    def backup(self, value):
        node = self
        while node is not None:
            node.visits += 1
            node.total += value
            node = node.parent


class SelfPlay:
    def __init__(self, net, seed=0):
        self.net = net.eval()
        self.rng = np.random.default_rng(seed)

    def search(self, obs):
        root = Node(1.0)
        root.expand(self.net.initial(obs))
        for _ in range(SIMULATIONS):
            leaf = root
            while leaf.children:
                leaf = leaf.select(self.rng)
            out = self.net.recurrent(leaf.parent.state, leaf.action)
            leaf.expand(out)
            leaf.backup(out.value + out.reward)
        visits = np.array([c.visits for c in root.children.values()], dtype=np.float32)
        return visits / visits.sum(), root.total / root.visits

    @torch.no_grad()
    def play(self):
        history = []
        for move in range(MOVES):
            obs = torch.from_numpy(self.rng.random((GAMES, 8, BOARD, BOARD), dtype=np.float32))
            policy, value = self.search(obs.to(DEVICE))
            action = int(self.rng.choice(ACTIONS, p=policy / policy.sum()))
            history.append((obs, action, policy, value))
            print(f'move {move}: action {action} value {value:.3f}')
        return history


if __name__ == '__main__':
    torch.manual_seed(0)
    game = SelfPlay(MuZeroNet().to(DEVICE)).play()
    print(len(game), 'moves')
