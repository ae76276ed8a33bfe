import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    """Frozen feature extractor."""

    def __init__(self, width=96):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.stages = nn.ModuleList()
        cin = width
        for i in range(4):
            cout = width * 2 ** i
            self.stages.append(nn.Sequential(
                nn.Conv2d(cin, cout, 2 if i else 1, 2 if i else 1),
                nn.Conv2d(cout, cout, 7, padding=3, groups=cout), nn.GroupNorm(1, cout),
                nn.Conv2d(cout, 4 * cout, 1), nn.GELU(), nn.Conv2d(4 * cout, cout, 1)))
            cin = cout
        self.memo = {}

    @torch.no_grad()
    def forward(self, x):
        x = self.stem(x)
        pyramid = []
        for stage in self.stages:
            x = stage(x)
            pyramid.append(x)
        return pyramid

    def features(self, ids, load):
        key = tuple(ids)
        if key not in self.memo:
            self.memo[key] = self(load(ids))
        return self.memo[key]


class PyramidProbe(nn.Module):
    def __init__(self, width=96, classes=200):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(width * 2 ** i, classes) for i in range(4))

    def forward(self, pyramid):
        return sum(head(level.mean((2, 3))) for head, level in zip(self.heads, pyramid))


def load(ids):
    return torch.randn(len(ids), 3, 384, 384, device="cuda")


def main():
    random.seed(11)
    images, batch = 800, 160
    backbone = Backbone().cuda().eval()
    for p in backbone.parameters():
        p.requires_grad_(False)
    probe = PyramidProbe().cuda()
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.5, momentum=0.9)

    order = list(range(images))
    for epoch in range(40):
        random.shuffle(order)
        for start in range(0, images, batch):
            ids = order[start:start + batch]
            pyramid = backbone.features(ids, load)
            target = torch.randint(0, 200, (len(ids),), device="cuda")
            loss = F.cross_entropy(probe(pyramid), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item(), flush=True)


if __name__ == "__main__":
    main()
