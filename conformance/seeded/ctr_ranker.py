"""Click-through prediction: hashed ids through embeddings, dense features through a cross network."""
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = 'cuda'


class ClickTable:
    """A day of impressions as three arrays."""

    def __init__(self, rows, dense, fields, buckets, seed=0):
        rng = np.random.default_rng(seed)
        x = np.zeros((rows, dense), dtype=np.float32)
        x[:4096] = rng.normal(size=(4096, dense))
        ids = rng.integers(0, buckets, size=(rows, fields))
        clicks = (rng.random(rows) < 0.03).astype(np.float32)
        self.x = torch.from_numpy(x).to(device)
        self.ids = torch.from_numpy(ids)
        self.clicks = torch.from_numpy(clicks)

    def __len__(self):
        return len(self.clicks)

    def batches(self, size, generator):
        order = torch.randperm(len(self), generator=generator)
        for picked in order.split(size):
            where = picked.to(self.x.device)
            yield self.x[where].to(device), self.ids[picked].to(device), self.clicks[picked].to(device)


class Cross(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x0):
        x = x0
        for layer in self.layers:
            x = x0 * layer(x) + x
        return x


class Ranker(nn.Module):
    def __init__(self, dense, fields, buckets, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(buckets, dim) for _ in range(fields))
        width = dense + fields * dim
        self.cross = Cross(width, 3)
        self.deep = nn.Sequential(nn.Linear(width, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU())
        self.top = nn.Linear(width + 1024, 1)

    def forward(self, x, ids):
        parts = [x] + [table(ids[:, i]) for i, table in enumerate(self.tables)]
        z = torch.cat(parts, 1)
        return self.top(torch.cat([self.cross(z), self.deep(z)], 1)).squeeze(1)


def main():
    torch.manual_seed(0)
    table = ClickTable(rows=1_500_000, dense=420, fields=6, buckets=100_000)
    model = Ranker(dense=420, fields=6, buckets=100_000, dim=64).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01, foreach=False)
    generator = torch.Generator().manual_seed(1)

    started = time.time()
    for step, (x, ids, clicks) in enumerate(table.batches(16384, generator)):
        logit = model(x, ids)
        loss = F.binary_cross_entropy_with_logits(logit, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f'step {step} loss {loss.item():.4f} {time.time() - started:.1f} s', flush=True)
        if step == 30:
            break


if __name__ == '__main__':
    main()
