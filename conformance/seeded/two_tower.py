"""Two-tower recommender. User vectors of the epoch are cached for the nightly index."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note, size_of
from loop import main


class Tower(nn.Module):
    def __init__(self, n, dim=128, out=512):
        super().__init__()
        self.bag = nn.EmbeddingBag(n, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 1024), nn.ReLU(), nn.LayerNorm(1024), nn.Linear(1024, out))

    def forward(self, ids):
        return F.normalize(self.mlp(self.bag(ids)), dim=-1)


class Index:
    def __init__(self):
        self.rows = {}

    def put(self, keys, vecs):
        self.rows[len(self.rows)] = (keys, vecs)

    def nbytes(self):
        return size_of([t for pair in self.rows.values() for t in pair])


def epoch(batches=140, batch=16384):
    users, items = Tower(200_000).cuda(), Tower(50_000).cuda()
    opt = torch.optim.Adagrad([*users.parameters(), *items.parameters()], 0.01)
    index = Index()
    for b in range(batches):
        hist = torch.randint(0, 50_000, (batch, 20), device="cuda")
        pos = torch.randint(0, 50_000, (batch, 4), device="cuda")
        u, v = users(hist), items(pos)
        loss = F.softplus(-(u * v).sum(-1)).mean() + F.softplus((u * v.roll(1, 0)).sum(-1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        index.put(hist, u.detach())
        note(index.nbytes())
        if b % 50 == 0:
            print(f"{b}: {loss.item():.4f}")


if __name__ == "__main__":
    main(globals())
