"""Train, save, and go on from the checkpoint as the cluster does after a preemption."""
import os
import tempfile

import torch
from torch import nn

WIDTH, DEPTH = 4096, 8


def network():
    with torch.device("cuda"):
        return nn.Sequential(*[layer for _ in range(DEPTH) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU())])


class Average:
    """Exponential average of the weights, in host memory."""

    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.weights = {k: v.detach().cpu() for k, v in model.state_dict().items()}

    def update(self, model):
        for k, v in model.state_dict().items():
            self.weights[k].lerp_(v.cpu(), 1 - self.decay)


def save(path, model, average, step):
    torch.save({"model": model.state_dict(), "average": average.weights, "step": step}, path)


def load(path, model, average):
    state = torch.load(path, map_location="cuda")
    model.load_state_dict(state["model"])
    average.weights.update(state["average"])
    return state["step"]


def train(model, optimizer, first, last):
    for step in range(first, last):
        x = torch.randn(256, WIDTH, device="cuda")
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return last


def job(path):
    model = network()
    average = Average(model)
    first = load(path, model, average) if os.path.exists(path) else 0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=False)
    last = train(model, optimizer, first, first + 4)
    save(path, model, average, last)
    print(f"trained from {first} to {last}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = os.path.join(folder, "latest.pt")
        for preemption in range(2):
            job(path)
