"""Label every point of airborne LiDAR tiles (ground, roof, tree, wire, ...), a whole tile at once."""
import argparse
import json
import time
from collections import Counter

import torch
import torch.nn as nn

LABELS = ['ground', 'low', 'tree', 'roof', 'facade', 'wire', 'water', 'bridge']


class PointBlock(nn.Module):
    def __init__(self, width, expand):
        super().__init__()
        self.scene = nn.Linear(width, width)
        self.wide = nn.Linear(width, expand * width)
        self.act = nn.ReLU(inplace=True)
        self.narrow = nn.Linear(expand * width, width)

    def forward(self, x):
        scene = self.scene(x.amax(0, keepdim=True))
        return self.narrow(self.act(self.wide(x))).add_(x).add_(scene)


class TileNet(nn.Module):
    def __init__(self, inputs=6, width=96, depth=8, expand=6):
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList(PointBlock(width, expand) for _ in range(depth))
        self.leave = nn.Linear(width, len(LABELS))

    def forward(self, points):
        x = self.enter(points)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)


class Flight:
    """The tiles of a flight and how many points each has."""

    def __init__(self, tiles, seed):
        g = torch.Generator().manual_seed(seed)
        counts = torch.empty(tiles).uniform_(760_000, 1_000_000, generator=g).long().tolist()
        self.points = {f'{2600 + i % 6}_{1200 + i // 6}': n for i, n in enumerate(counts)}

    def order(self):
        return sorted(self.points, key=self.points.get)

    def load(self, tile):
        return torch.zeros(self.points[tile], 6)


class Labeller:
    def __init__(self, device):
        self.device = device
        self.model = TileNet().to(device).eval()

    @torch.inference_mode()
    def __call__(self, points):
        points = points.to(self.device)
        points[:, :3] -= points[:, :3].mean(0)
        return self.model(points).argmax(1).to(torch.uint8).cpu()


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--tiles', type=int, default=30)
    p.add_argument('--seed', type=int, default=3)
    args = p.parse_args()
    torch.manual_seed(0)
    flight = Flight(args.tiles, args.seed)
    label = Labeller('cuda')
    report, started = {}, time.time()
    for tile in flight.order():
        found = label(flight.load(tile))
        report[tile] = Counter(LABELS[k] for k in found.unique().tolist())
        print(f'{tile}: {flight.points[tile]} points, {time.time() - started:.1f} s', flush=True)
    print(json.dumps({t: dict(c) for t, c in list(report.items())[:3]}))


if __name__ == '__main__':
    main()
