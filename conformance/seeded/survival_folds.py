"""Five-fold cross-validation of a tabular transformer; out-of-fold scores and an ensemble for the test set."""
from dataclasses import dataclass, field
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

device = 'cuda'
FOLDS = 5


class Tokens(nn.Module):
    def __init__(self, numeric, categories, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numeric, width) * 0.02)
        self.bias = nn.Parameter(torch.zeros(numeric, width))
        self.tables = nn.ModuleList(nn.Embedding(c, width) for c in categories)

    def forward(self, num, cat):
        a = num.unsqueeze(-1) * self.weight + self.bias
        b = torch.stack([t(cat[:, i]) for i, t in enumerate(self.tables)], 1)
        return torch.cat([a, b], 1)


class TabTransformer(nn.Module):
    def __init__(self, numeric=24, categories=(40000, 25000, 9000, 300, 12), width=768, depth=8):
        super().__init__()
        self.tokens = Tokens(numeric, categories, width)
        layer = nn.TransformerEncoderLayer(width, 8, 2048, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.risk = nn.Linear(width, 1)

    def forward(self, num, cat):
        return self.risk(self.encoder(self.tokens(num, cat)).mean(1)).squeeze(-1)


@dataclass
class FoldResult:
    fold: int
    score: float
    model: Optional[nn.Module] = None
    held_out: list = field(default_factory=list)


def train_fold(fold, data, train_idx, valid_idx):
    torch.manual_seed(fold)
    model = TabTransformer().to(device)
    opt = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    model.train()
    for num, cat, event in DataLoader(Subset(data, train_idx), 128, shuffle=True):
        risk = model(num.to(device), cat.to(device))
        loss = F.binary_cross_entropy_with_logits(risk, event.to(device))
        loss.backward()
        opt.step()
        opt.zero_grad()
    model.eval()
    held = []
    with torch.no_grad():
        for num, cat, event in DataLoader(Subset(data, valid_idx), 256):
            held.append(model(num.to(device), cat.to(device)).cpu())
    held = torch.cat(held)
    score = F.binary_cross_entropy_with_logits(held, data.tensors[2][valid_idx]).item()
    return FoldResult(fold, score, model, held.tolist())


def ensemble(results, num, cat):
    with torch.no_grad():
        votes = []
        for result in results:
            net = result.model.to(device)
            votes.append(net(num.to(device), cat.to(device)).cpu())
            net.cpu()
    return torch.stack(votes).mean(0)


if __name__ == '__main__':
    gen = torch.Generator().manual_seed(0)
    n = 1280
    sizes = (40000, 25000, 9000, 300, 12)
    data = TensorDataset(
        torch.randn(n, 24, generator=gen),
        torch.stack([torch.randint(s, (n,), generator=gen) for s in sizes], 1),
        torch.randint(2, (n,), generator=gen).float())
    order = torch.randperm(n, generator=gen).chunk(FOLDS)
    results = []
    for fold in range(FOLDS):
        train_idx = torch.cat([part for i, part in enumerate(order) if i != fold])
        results.append(train_fold(fold, data, train_idx, order[fold]))
        print(f'fold {fold} loss {results[-1].score:.4f}')
    print('mean', sum(r.score for r in results) / FOLDS)
    print('test', ensemble(results, data.tensors[0][:64], data.tensors[1][:64]).mean().item())
