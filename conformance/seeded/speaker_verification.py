"""Speaker embeddings with an additive-margin loss and a consistency term that is ramped in late."""
import argparse
from collections import defaultdict
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

device = 'cuda'


class Utterances(Dataset):
    def __init__(self, n, mels=80, frames=400, speakers=600):
        g = torch.Generator().manual_seed(7)
        self.mels, self.frames = mels, frames
        self.speaker = torch.randint(speakers, (n,), generator=g)

    def __len__(self):
        return len(self.speaker)

    def __getitem__(self, i):
        return torch.full((self.mels, self.frames), float(i % 13)), self.speaker[i]


class TDNN(nn.Module):
    def __init__(self, mels=80, width=768, emb=256, depth=5):
        super().__init__()
        layers, c = [], mels
        for d in range(depth):
            layers += [nn.Conv1d(c, width, 3, dilation=d + 1, padding=d + 1), nn.BatchNorm1d(width), nn.ReLU()]
            c = width
        self.frames = nn.Sequential(*layers)
        self.proj = nn.Linear(2 * width, emb)

    def forward(self, x):
        h = self.frames(x)
        stats = torch.cat([h.mean(-1), h.std(-1)], 1)
        return F.normalize(self.proj(stats), dim=1)


class AMSoftmax(nn.Module):
    def __init__(self, emb, classes, margin=0.2, scale=30.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, emb) * 0.01)
        self.margin, self.scale = margin, scale

    def forward(self, e, y):
        cos = e @ F.normalize(self.weight, dim=1).t()
        cos = cos - self.margin * F.one_hot(y, cos.size(1))
        return F.cross_entropy(self.scale * cos, y)


@dataclass
class Meter:
    """Smoothed values for the progress line."""
    beta: float = 0.9
    values: dict = field(default_factory=dict)
    counts: dict = field(default_factory=lambda: defaultdict(int))

    def update(self, **named):
        for key, value in named.items():
            old = self.values.get(key, 0.0)
            self.values[key] = self.beta * old + (1 - self.beta) * value
            self.counts[key] += 1

    def line(self):
        return '  '.join(f'{k} {float(v):.3f}' for k, v in self.values.items())


def spec_augment(x, width=40):
    x = x.clone()
    start = torch.randint(0, x.size(-1) - width, (1,)).item()
    x[..., start:start + width] = 0
    return x


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--batch', type=int, default=48)
    p.add_argument('--steps', type=int, default=40)
    p.add_argument('--warmup', type=int, default=100)
    args = p.parse_args()
    torch.manual_seed(0)
    net = TDNN().to(device)
    head = AMSoftmax(256, 600).to(device)
    opt = torch.optim.AdamW([*net.parameters(), *head.parameters()], 1e-3)
    loader = DataLoader(Utterances(args.batch * args.steps), args.batch, shuffle=True)
    meter = Meter()
    for step, (x, y) in enumerate(loader):
        x, y = x.to(device), y.to(device)
        emb = net(x)
        loss = head(emb, y)
        consistency = 1 - F.cosine_similarity(net(spec_augment(x)), emb.detach()).mean()
        if step >= args.warmup:
            loss = loss + 0.5 * consistency
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        meter.update(ce=loss.item(), consistency=consistency)
        if step % 10 == 9:
            print(step + 1, meter.line())


if __name__ == '__main__':
    main()
