import collections

import torch
from torch.utils.data import Dataset


class Meter:
    """Running mean, as in the imagenet example."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum = self.sum + value * n
        self.count += n

    @property
    def avg(self):
        return float(self.sum) / max(1, self.count)


class MeterBoard:
    def __init__(self):
        self.meters = collections.defaultdict(Meter)

    def log(self, n, **values):
        for name, value in values.items():
            self.meters[name].update(value, n)

    def __str__(self):
        return '  '.join(f'{k} {m.avg:.4f}' for k, m in sorted(self.meters.items()))


class LaneScenes(Dataset):
    def __init__(self, count, height, width, classes):
        self.count, self.height, self.width, self.classes = count, height, width, classes

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        image = torch.rand(3, self.height, self.width, generator=g)
        mask = torch.randint(0, self.classes, (self.height, self.width), generator=g)
        jitter = 0.8 + 0.4 * torch.rand(3, 1, 1, generator=g)
        return image, (image * jitter).clamp(0, 1), mask
