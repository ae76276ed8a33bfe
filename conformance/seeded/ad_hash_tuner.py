"""Click model on hashed features: one wide table for each field, a small cross network on top."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def flags():
    p = argparse.ArgumentParser()
    p.add_argument("--fields", type=int, default=20)
    p.add_argument("--rows", type=int, default=120_000)
    p.add_argument("--dim", type=int, default=64)
    p.add_argument("--batch", type=int, default=2048)
    p.add_argument("--steps", type=int, default=14)
    p.add_argument("--lr", type=float, default=1e-3)
    return p.parse_args()


class Cross(nn.Module):
    def __init__(self, width, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x0):
        x = x0
        for layer in self.layers:
            x = x0 * layer(x) + x
        return x


class ClickModel(nn.Module):
    def __init__(self, fields, rows, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for _ in range(fields))
        self.cross = Cross(fields * dim)
        self.deep = nn.Sequential(nn.Linear(fields * dim, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
        self.wide = nn.Linear(fields * dim, 1)

    def forward(self, ids):
        x = torch.cat([table(ids[:, k]) for k, table in enumerate(self.tables)], 1)
        return (self.deep(x) + self.wide(self.cross(x))).squeeze(1)


def make_optimizer(model, a):
    decay, rest = [], []
    for name, p in model.named_parameters():
        (rest if p.ndim < 2 or name.startswith("tables") else decay).append(p)
    return torch.optim.Adam([{"params": decay, "weight_decay": 1e-5}, {"params": rest, "weight_decay": 1e-7}],
                            lr=a.lr, betas=(0.9, 0.99))


def auc(score, label):
    rank = score.argsort().argsort().double() + 1
    pos = label.sum()
    neg = len(label) - pos
    return ((rank[label > 0].sum() - pos * (pos + 1) / 2) / (pos * neg).clamp(min=1)).item()


def main():
    a = flags()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    n = a.batch * a.steps
    ids = torch.randint(0, a.rows, (n, a.fields), generator=g)
    clicks = (torch.rand(n, generator=g) < 0.1).float()
    loader = DataLoader(TensorDataset(ids, clicks), a.batch)
    model = ClickModel(a.fields, a.rows, a.dim).to("cuda")
    optimizer = make_optimizer(model, a)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, a.lr, total_steps=a.steps + 1)
    for step, (x, y) in enumerate(loader):
        logit = model(x.to("cuda"))
        loss = F.binary_cross_entropy_with_logits(logit, y.to("cuda"))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 4 == 0:
            print(f"step {step} loss {loss.item():.4f} auc {auc(logit.detach().cpu(), y):.3f}")


if __name__ == "__main__":
    main()
