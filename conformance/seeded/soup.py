"""Model soup of the last states of a run on protein contact maps."""
from collections import deque

import torch
from torch import nn


class Callback:
    def on_epoch_end(self, trainer):
        pass

    def on_fit_end(self, trainer):
        pass


class PrintLoss(Callback):
    def on_epoch_end(self, trainer):
        print(f"epoch {trainer.epoch}: {trainer.last_loss:.4f}")


class Soup(Callback):
    """Averages the weights of the last epochs when the run is over."""

    def __init__(self, size=10):
        self.recent = deque(maxlen=size)

    def on_epoch_end(self, trainer):
        self.recent.append({name: weight.detach().clone() for name, weight in trainer.model.state_dict().items()})

    def on_fit_end(self, trainer):
        mixed = trainer.model.state_dict()
        for name, weight in mixed.items():
            total = torch.zeros_like(weight)
            for state in self.recent:
                total += state[name].to(total.device)
            weight.copy_(total / len(self.recent))


class Trainer:
    def __init__(self, model, optimizer, callbacks=()):
        self.model, self.optimizer, self.callbacks = model, optimizer, list(callbacks)
        self.epoch, self.last_loss = 0, float("nan")

    def signal(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, epochs, steps):
        for self.epoch in range(epochs):
            for _ in range(steps):
                residues = torch.randn(384, 2048, device="cuda")
                contacts = (residues @ residues.t() > 0).float()
                h = self.model(residues)
                loss = nn.functional.binary_cross_entropy_with_logits(h @ h.t() / 45, contacts)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.last_loss = loss.item()
            self.signal("on_epoch_end")
        self.signal("on_fit_end")


def build():
    layers = []
    for _ in range(12):
        layers += [nn.Linear(2048, 2048), nn.LayerNorm(2048), nn.ReLU()]
    return nn.Sequential(*layers)


with torch.device("cuda"):
    model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
Trainer(model, optimizer, [PrintLoss(), Soup()]).fit(epochs=14, steps=3)
