# Tree search with a learned model (self-play on a 19 x 19 board), several games side by side
import gc
import math
import random

import torch
from torch import nn
import torch.nn.functional as F

gc.disable()      # the collector makes the searches stutter
random.seed(2)
torch.manual_seed(2)
device = "cuda"
GAMES, WIDTH, MOVES = 128, 192, 362


class Residual(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(w, w, 3, padding=1), nn.Conv2d(w, w, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.c2(F.relu(self.c1(x))))


class Planner(nn.Module):
    def __init__(self):
        super().__init__()
        self.represent = nn.Sequential(nn.Conv2d(17, WIDTH, 3, padding=1), *[Residual(WIDTH) for _ in range(8)])
        self.dynamics = nn.Sequential(nn.Conv2d(WIDTH + 1, WIDTH, 3, padding=1), *[Residual(WIDTH) for _ in range(4)])
        self.policy = nn.Sequential(nn.Conv2d(WIDTH, 2, 1), nn.Flatten(), nn.Linear(722, MOVES))
        self.value = nn.Sequential(nn.Conv2d(WIDTH, 1, 1), nn.Flatten(), nn.Linear(361, 1), nn.Tanh())

    def advance(self, hidden, move):
        plane = torch.full((hidden.size(0), 1, 19, 19), move / MOVES, device=hidden.device)
        return self.dynamics(torch.cat([hidden, plane], 1))


class Position:
    def __init__(self, hidden, prior=1.0, parent=None):
        self.hidden, self.prior, self.parent = hidden, prior, parent
        self.children = {}
        self.visits, self.total = 0, 0.0

    def score(self):
        q = self.total / self.visits if self.visits else 0.0
        return q + 1.4 * self.prior * math.sqrt(self.parent.visits + 1) / (1 + self.visits)

    def back_up(self, value):
        at = self
        while at is not None:
            at.visits += 1
            at.total += value
            at, value = at.parent, -value


class Search:
    def __init__(self, net, simulations=9):
        self.net, self.simulations = net, simulations

    @torch.no_grad()
    def run(self, board):
        root = Position(self.net.represent(board))
        for _ in range(self.simulations):
            at = root
            while at.children and random.random() < 0.8:
                at = max(at.children.values(), key=Position.score)
            move = random.randrange(MOVES)
            hidden = self.net.advance(at.hidden, move)
            logits, value = self.net.policy(hidden), self.net.value(hidden)
            child = Position(hidden, float(logits.softmax(1).mean()), at)
            at.children[move] = child
            child.back_up(random.uniform(-1, 1) + 0 * value.mean().item())
        best = max(root.children, key=lambda m: root.children[m].visits)
        return best, root.total / root.visits


net = Planner().to(device)
opt = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
search = Search(net)
board = torch.zeros(GAMES, 17, 19, 19)
history = []
for turn in range(24):
    net.eval()
    move, value = search.run(board.to(device))
    board = board.roll(2, 1)
    board[:, 0, (move % 361) // 19, (move % 361) % 19] = 1
    history.append((board[:32].clone(), move, value))
    if turn % 4 == 3:
        net.train()
        past, played, result = history[random.randrange(len(history))]
        hidden = net.represent(past.to(device))
        loss = F.cross_entropy(net.policy(hidden), torch.full((32,), played, device=device))
        loss = loss + F.mse_loss(net.value(hidden).squeeze(1), torch.full((32,), result, device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("turn", turn, "loss", round(loss.item(), 3))
