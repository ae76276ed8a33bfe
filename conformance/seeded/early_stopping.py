import copy
import math

import torch
import torch.nn as nn

from note import note, size_of


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience = patience
        self.best = math.inf
        self.bad_epochs = 0
        self.history = {}

    def step(self, epoch, metric, model):
        if metric < self.best:
            self.best = metric
            self.bad_epochs = 0
            self.history[epoch] = {"metric": metric, "weights": copy.deepcopy(model.state_dict())}
            note(size_of([one for kept in self.history.values() for one in kept["weights"].values()]))
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience

    def restore(self, model):
        epoch = min(self.history, key=lambda e: self.history[e]["metric"])
        model.load_state_dict(self.history[epoch]["weights"])


class Tabular(nn.Module):
    def __init__(self, width=4096, depth=6):
        super().__init__()
        layers = [nn.Linear(256, width, device="cuda"), nn.ReLU()]
        for _ in range(depth):
            layers += [nn.Linear(width, width, device="cuda"), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1, device="cuda"))

    def forward(self, x):
        return self.net(x)


model = Tabular()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
stopper = EarlyStopping()

# the validation curve of the last run, which improved nearly all the time
curve = [1 / (1 + 0.1 * e) + (0.02 if e % 5 == 4 else 0) for e in range(28)]

for epoch in range(28):
    model.train()
    for _ in range(3):
        x, y = torch.randn(512, 256, device="cuda"), torch.randn(512, 1, device="cuda")
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if stopper.step(epoch, curve[epoch], model):
        break
    print("epoch", epoch, "best", round(stopper.best, 4))
stopper.restore(model)
