"""Keyword spotting: finds the largest batch that fits, then trains with it."""
import functools
import logging

import torch
from torch import nn

logging.basicConfig(format='%(message)s', level=logging.INFO)
log = logging.getLogger('kws')
device = 'cuda'


class Attempts:
    """What happened for each batch size, for the report at the end."""

    def __init__(self):
        self.outcome = {}

    def record(self, size, what):
        self.outcome[size] = what

    def __str__(self):
        return ', '.join(f'{s}: {w or "ok"}' for s, w in self.outcome.items())


def shrinking(start, smallest, attempts, factor=0.75):
    """Calls the function with smaller and smaller batches until it does not run out of memory."""
    def decorate(function):
        @functools.wraps(function)
        def run(*args, **kwargs):
            size = start
            while True:
                try:
                    result = function(*args, batch_size=size, **kwargs)
                except RuntimeError as e:
                    if 'out of memory' not in str(e) or int(size * factor) < smallest:
                        raise
                    attempts.record(size, e)
                    log.info('batch %d does not fit', size)
                else:
                    attempts.record(size, None)
                    return result
                torch.cuda.empty_cache()
                size = int(size * factor)
        return run
    return decorate


attempts = Attempts()


class KeywordNet(nn.Module):
    def __init__(self, words=35, width=192, blocks=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, (10, 4), stride=(2, 2), padding=(5, 2))
        self.blocks = nn.ModuleList(nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, groups=width), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.ReLU()) for _ in range(blocks))
        self.out = nn.Linear(width, words)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean((2, 3)))


def one_step(model, opt, batch_size):
    x = torch.zeros(batch_size, 1, 98, 40).to(device)
    y = torch.randint(35, (batch_size,)).to(device)
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss


@shrinking(start=224, smallest=56, attempts=attempts)
def find(model, opt, batch_size):
    for _ in range(2):
        one_step(model, opt, batch_size)
    return batch_size


def main():
    model = KeywordNet().to(device)
    opt = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    size = find(model, opt)
    log.info('training with batches of %d (%s)', size, attempts)
    for step in range(10):
        loss = one_step(model, opt, size)
    log.info('last loss %.4f', loss.item())


if __name__ == '__main__':
    main()
