"""What the loops of seeded programs share: batches, losses, one update, and how a program of a file is started.

    python leaks.py history_of_losses width=512 steps=20
"""

import sys

import torch
from torch.nn import functional


def main(programs):
    """Runs the function that the first argument names, with the whole numbers that follow it."""
    torch.manual_seed(0)
    given = dict(argument.split("=") for argument in sys.argv[2:])
    programs[sys.argv[1]](**{key: int(value) for key, value in given.items()})
    torch.cuda.synchronize()


def tokens(batch, length, vocabulary=8192):
    return torch.randint(0, vocabulary, (batch, length)).cuda()


def images(batch, size, channels=3):
    return torch.randn(batch, channels, size, size, device="cuda")


def labels(batch, classes=1000):
    return torch.randint(0, classes, (batch,)).cuda()


def language_loss(logits, targets):
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())


def update(optimizer, loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def train_step(model, optimizer, ids):
    loss = language_loss(model(ids), ids)
    update(optimizer, loss)
    return loss.item()


def classify_step(model, optimizer, pictures, targets):
    loss = functional.cross_entropy(model(pictures), targets)
    update(optimizer, loss)
    return loss.item()
