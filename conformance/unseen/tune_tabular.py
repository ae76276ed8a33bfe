import itertools
import random

import torch
from torch import nn

ON_FINISH = []


def on_finish(fn):
    ON_FINISH.append(fn)
    return fn


class ResidualMLP(nn.Module):
    def __init__(self, features, width, depth, dropout):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(),
                          nn.Dropout(dropout), nn.Linear(2 * width, width))
            for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x).squeeze(-1)


def make_data(rows, features, device):
    x = torch.randn(rows, features, device=device)
    y = torch.randn(rows, device=device)
    return x, y


def run_trial(number, params, train, valid, batch=2048, steps=2):
    x, y = train
    with x.device:
        model = ResidualMLP(x.size(1), params["width"], params["depth"], params["dropout"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=params["lr"], weight_decay=params["decay"])
    model.train()
    for step in range(steps):
        rows = slice(step * batch, (step + 1) * batch)
        loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    def evaluate():
        model.eval()
        with torch.no_grad():
            return nn.functional.l1_loss(model(valid[0][:batch]), valid[1][:batch]).item()

    score = evaluate()

    @on_finish
    def report():
        print(f"trial {number}: {params} first {score:.4f} final {evaluate():.4f}")

    return score


def search(trials=40, seed=3):
    rng = random.Random(seed)
    grid = list(itertools.product((3072, 3584), (6, 8), (0.0, 0.1), (1e-4, 3e-4, 1e-3), (0.0, 0.01)))
    rng.shuffle(grid)
    device = torch.device("cuda")
    train = make_data(200_000, 512, device)
    valid = make_data(20_000, 512, device)
    scores = {}
    for number, (width, depth, dropout, lr, decay) in enumerate(grid[:trials]):
        params = dict(width=width, depth=depth, dropout=dropout, lr=lr, decay=decay)
        scores[number] = run_trial(number, params, train, valid)
        torch.cuda.empty_cache()
        print(f"trial {number} score {scores[number]:.4f}", flush=True)
    return min(scores, key=scores.get)


if __name__ == "__main__":
    best = search()
    for fn in ON_FINISH:
        fn()
    print("best trial", best)
