"""Federated averaging over hospitals: a length-of-stay transformer on vital signs."""
import copy
import random
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
torch.manual_seed(0)
dev = torch.device("cuda")


@dataclass
class Settings:
    hospitals: int = 12
    per_round: int = 3
    rounds: int = 4
    local_steps: int = 3
    batch: int = 32
    dim: int = 768
    depth: int = 8
    window: int = 96
    channels: int = 24


class StayModel(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.inp = nn.Linear(s.channels, s.dim)
        self.place = nn.Parameter(torch.zeros(s.window, s.dim))
        layer = nn.TransformerEncoderLayer(s.dim, 12, 4 * s.dim, 0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, s.depth, enable_nested_tensor=False)
        self.out = nn.Linear(s.dim, 1)

    def forward(self, x):
        return self.out(self.enc(self.inp(x) + self.place).mean(1)).squeeze(-1)


class Hospital:
    def __init__(self, number, model, s):
        g = torch.Generator().manual_seed(number)
        n = s.batch * (2 + number % 3)
        self.data = DataLoader(TensorDataset(torch.randn(n, s.window, s.channels, generator=g),
                                             torch.rand(n, generator=g) * 20), s.batch, shuffle=True)
        self.number, self.s = number, s
        self.model = copy.deepcopy(model)
        self.weight = n

    def fit(self, weights):
        self.model.load_state_dict(weights)
        self.model.to(dev)
        self.model.train()
        opt = torch.optim.SGD(self.model.parameters(), lr=0.01)
        batches = iter(self.data)
        for _, (x, y) in zip(range(self.s.local_steps), batches):
            loss = nn.functional.smooth_l1_loss(self.model(x.to(dev)), y.to(dev))
            opt.zero_grad()
            loss.backward()
            opt.step()
        opt.zero_grad()
        return {k: v.cpu() for k, v in self.model.state_dict().items()}, loss.item()


class Server:
    def __init__(self, s):
        self.s = s
        self.model = StayModel(s).to(dev)
        self.hospitals = [Hospital(i, self.model, s) for i in range(s.hospitals)]

    def round(self, number):
        chosen = random.sample(self.hospitals, self.s.per_round)
        weights = {k: v.cpu() for k, v in self.model.state_dict().items()}
        total = sum(h.weight for h in chosen)
        mean, losses = None, []
        for h in chosen:
            update, loss = h.fit(weights)
            losses.append(loss)
            part = {k: v * (h.weight / total) for k, v in update.items()}
            mean = part if mean is None else {k: mean[k] + v for k, v in part.items()}
        self.model.load_state_dict(mean)
        print(f"round {number}: " + ", ".join(f"{h.number}={l:.3f}" for h, l in zip(chosen, losses)))


if __name__ == "__main__":
    settings = Settings()
    server = Server(settings)
    for r in range(settings.rounds):
        server.round(r)
