"""A small DLRM on click logs."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, IterableDataset

TABLES = [600_000, 450_000, 450_000, 400_000, 350_000, 300_000, 250_000, 120_000, 40_000, 1_000]


class ClickLog(IterableDataset):
    def __init__(self, batches, batch_size, seed):
        self.batches, self.batch_size, self.seed = batches, batch_size, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.batches):
            dense = torch.rand(self.batch_size, 13, generator=g)
            cats = torch.stack([torch.randint(0, n, (self.batch_size,), generator=g) for n in TABLES], 1)
            click = (torch.rand(self.batch_size, generator=g) < 0.03).float()
            yield dense, cats, click


def mlp(*dims):
    layers = []
    for a, b in zip(dims, dims[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


class DLRM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim) for n in TABLES)
        self.bottom = mlp(13, 512, 256, dim)
        pairs = (len(TABLES) + 1) * len(TABLES) // 2
        self.top = nn.Sequential(mlp(dim + pairs, 1024, 512), nn.Linear(512, 1))
        i, j = torch.tril_indices(len(TABLES) + 1, len(TABLES) + 1, offset=-1)
        self.register_buffer('li', i)
        self.register_buffer('lj', j)

    def forward(self, dense, cats):
        x = self.bottom(dense)
        vectors = torch.stack([x] + [t(c) for t, c in zip(self.tables, cats.unbind(1))], 1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.li, self.lj]
        return self.top(torch.cat([x, dots], 1)).squeeze(1)


def build_optimizer(model, args):
    decay = [p for n, p in model.named_parameters() if p.dim() > 1 and not n.startswith('tables')]
    rest = [p for n, p in model.named_parameters() if p.dim() < 2 or n.startswith('tables')]
    groups = [{'params': decay, 'weight_decay': 1e-5}, {'params': rest, 'weight_decay': 0.0}]
    return torch.optim.AdamW(groups, lr=args.lr, fused=True)


def train(args):
    device = torch.device('cuda')
    model = DLRM(args.dim).to(device)
    n = sum(p.numel() for p in model.parameters())
    print(f'{n / 1e6:.0f}M parameters')
    optimizer = build_optimizer(model, args)
    loader = DataLoader(ClickLog(args.batches, args.batch_size, 5), batch_size=None)
    ema = None
    for step, (dense, cats, click) in enumerate(loader):
        logit = model(dense.to(device), cats.to(device))
        loss = F.binary_cross_entropy_with_logits(logit, click.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        value = loss.item()
        ema = value if ema is None else 0.95 * ema + 0.05 * value
        if step % 10 == 0:
            print(f'step {step} logloss {ema:.4f}')

    model.eval()
    with torch.no_grad():
        scores = []
        for dense, cats, _ in ClickLog(4, args.batch_size, 6):
            scores.append(model(dense.to(device), cats.to(device)).sigmoid().cpu())
    print('mean ctr', torch.cat(scores).mean().item())


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--dim', type=int, default=128)
    p.add_argument('--batch-size', type=int, default=8192)
    p.add_argument('--batches', type=int, default=25)
    p.add_argument('--lr', type=float, default=1e-3)
    train(p.parse_args())
