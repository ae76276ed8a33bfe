"""Click-through model; stages unfreeze more and more of it, each stage with an optimizer of its own."""
import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR

device = 'cuda'
FIELDS = (1_200_000, 600_000, 300_000, 50_000, 5_000)


class CTR(nn.Module):
    def __init__(self, dim=64, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, dim) for n in FIELDS)
        self.bottom = nn.Sequential(nn.Linear(dense, 512), nn.ReLU(), nn.Linear(512, dim))
        n = len(FIELDS) + 1
        self.top = nn.Sequential(
            nn.Linear(n * (n - 1) // 2 + dim, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, dense, cats):
        d = self.bottom(dense)
        rows = torch.stack([d, *[t(cats[:, i]) for i, t in enumerate(self.tables)]], 1)
        inter = rows @ rows.transpose(1, 2)
        i, j = torch.triu_indices(rows.size(1), rows.size(1), 1)
        return self.top(torch.cat([d, inter[:, i, j]], 1)).squeeze(-1)


class Stages:
    """Trains the top first, then the small tables, then everything."""

    def __init__(self, model, steps):
        self.model, self.steps = model, steps
        self.gen = torch.Generator().manual_seed(9)
        self.log = []

    def parts(self, stage):
        yield from (self.model.top, self.model.bottom)
        if stage >= 1:
            yield from self.model.tables[2:]
        if stage >= 2:
            yield from self.model.tables[:2]

    def batch(self, size=4096):
        dense = torch.rand(size, 13, generator=self.gen)
        cats = torch.stack([torch.randint(n, (size,), generator=self.gen) for n in FIELDS], 1)
        return dense.to(device), cats.to(device), torch.randint(2, (size,), generator=self.gen).float().to(device)

    def run(self, stage):
        self.model.requires_grad_(False)
        params = []
        for part in self.parts(stage):
            params += part.requires_grad_(True).parameters()
        optimizer = torch.optim.Adam(params, lr=1e-3 / (stage + 1), fused=True)
        schedule = LinearLR(optimizer, 1.0, 0.1, self.steps)
        for _ in range(self.steps):
            dense, cats, clicked = self.batch()
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(dense, cats), clicked)
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
        self.log.append((stage, loss.item(), schedule))
        return loss.item()


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('--steps', type=int, default=8)
    ap.add_argument('--rounds', type=int, default=3)
    args = ap.parse_args()
    torch.manual_seed(0)
    stages = Stages(CTR().to(device), args.steps)
    for turn in range(args.rounds):
        for stage in (0, 1, 2):
            print(f'round {turn} stage {stage} loss {stages.run(stage):.4f}')
    print('rates', [s.get_last_lr()[0] for _, _, s in stages.log])
