"""Momentum contrast on images: a query network, a slow key network and a queue of negatives of fixed length."""
import argparse
import copy

import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = 'cuda'


class TwoViews(Dataset):
    def __init__(self, n, size=160):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        base = torch.full((3, self.size, self.size), i / self.n)
        return base, base.flip(-1)


class MoCo(nn.Module):
    def __init__(self, dim=128, length=16384, momentum=0.999):
        super().__init__()
        self.query = torchvision.models.resnet34(weights=None, num_classes=dim)
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.momentum = momentum
        self.register_buffer('queue', F.normalize(torch.randn(length, dim), dim=1))
        self.place = 0

    @torch.no_grad()
    def keys(self, x):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.lerp_(q, 1 - self.momentum)
        return F.normalize(self.key(x), dim=1)

    @torch.no_grad()
    def enqueue(self, k):
        n = len(k)
        self.queue[self.place:self.place + n] = k
        self.place = (self.place + n) % len(self.queue)

    def forward(self, a, b, temperature=0.2):
        q = F.normalize(self.query(a), dim=1)
        k = self.keys(b)
        pos = (q * k).sum(1, keepdim=True)
        logits = torch.cat([pos, q @ self.queue.clone().t()], 1) / temperature
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))
        self.enqueue(k)
        return loss


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=32)
    ap.add_argument('--epochs', type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(0)
    model = MoCo().to(device)
    opt = torch.optim.SGD(model.query.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
    loader = DataLoader(TwoViews(384), args.batch, shuffle=True, drop_last=True)
    curve = []
    for epoch in range(args.epochs):
        total = 0.0
        for a, b in loader:
            loss = model(a.to(device), b.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        curve.append(total / len(loader))
        print(epoch, curve[-1])


if __name__ == '__main__':
    main()
