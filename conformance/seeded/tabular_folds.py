import copy
import torch
from torch import nn, optim

torch.set_default_device("cuda")


class ResBlock(nn.Module):
    def __init__(self, d, mult=4, p=0.2):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, mult * d), nn.ReLU(), nn.Dropout(p), nn.Linear(mult * d, d))

    def forward(self, x):
        return x + self.body(x)


class TabNet(nn.Module):
    def __init__(self, columns, d=1024, depth=6):
        super().__init__()
        self.inp = nn.Linear(columns, d)
        self.blocks = nn.Sequential(*[ResBlock(d) for _ in range(depth)])
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x))).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.wait = patience, None, 0

    def better(self, epoch, score):
        # warm-up epochs always count as an improvement
        if self.best is None or score < self.best or epoch < 2:
            self.best, self.wait = score, 0
            return True
        self.wait += 1
        return False

    @property
    def over(self):
        return self.wait >= self.patience


class CrossValidation:
    def __init__(self, table, target, folds=12):
        self.table, self.target, self.folds = table, target, folds
        self.winners = {}
        self.scores = []

    def split(self, k):
        n = len(self.table)
        lo, hi = k * n // self.folds, (k + 1) * n // self.folds
        held = slice(lo, hi)
        rest = torch.cat([torch.arange(0, lo), torch.arange(hi, n)])
        return rest, held

    def fit_fold(self, k, epochs=4):
        rest, held = self.split(k)
        net = TabNet(self.table.shape[1])
        opt = optim.AdamW(net.parameters(), 1e-3, weight_decay=1e-2)
        stop = EarlyStopping(patience=2)
        for epoch in range(epochs):
            net.train()
            for idx in rest.split(1024):
                loss = nn.functional.mse_loss(net(self.table[idx]), self.target[idx])
                opt.zero_grad()
                loss.backward()
                opt.step()
            net.eval()
            with torch.no_grad():
                score = nn.functional.mse_loss(net(self.table[held]), self.target[held]).item()
            if stop.better(epoch, score):
                self.winners[k] = copy.deepcopy(net.state_dict())
            if stop.over:
                break
        self.scores.append(stop.best)

    def run(self):
        for k in range(self.folds):
            self.fit_fold(k)
            print(f"fold {k}: {self.scores[-1]:.4f}")
        return self

    @torch.no_grad()
    def blend(self, rows):
        net = TabNet(self.table.shape[1]).eval()
        total = 0
        for weights in self.winners.values():
            net.load_state_dict(weights)
            total = total + net(rows)
        return total / len(self.winners)


table = torch.randn(12_288, 180)
target = torch.randn(12_288)
cv = CrossValidation(table, target).run()
print("blend", cv.blend(table[:512]).shape, "mean", sum(cv.scores) / len(cv.scores))
