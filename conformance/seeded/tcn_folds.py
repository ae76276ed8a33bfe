"""Five-fold cross-validation of a temporal convolution network on energy load."""
import gc

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset


class TCN(nn.Module):
    def __init__(self, channels, width=256, layers=8):
        super().__init__()
        self.inp = nn.Conv1d(channels, width, 1)
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, 3, dilation=2 ** i, padding=2 ** i) for i in range(layers))
        self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(layers))
        self.out = nn.Linear(width, 24)

    def forward(self, x):
        h = self.inp(x)
        for conv, norm in zip(self.convs, self.norms):
            h = h + F.gelu(norm(conv(h)))
        return self.out(h[..., -1])


def run_fold(data, train_ids, valid_ids, device):
    model = TCN(data.tensors[0].shape[1]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for x, y in DataLoader(Subset(data, train_ids), 96, shuffle=True):
        loss = F.l1_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
    error, count = 0.0, 0
    with torch.no_grad():
        for x, y in DataLoader(Subset(data, valid_ids), 192):
            error += (model(x.to(device)).cpu() - y).abs().sum().item()
            count += y.numel()
    return error / count, {k: v.cpu() for k, v in model.state_dict().items()}


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(1000, 16, 672, generator=g), torch.randn(1000, 24, generator=g))
    folds = np.array_split(np.random.default_rng(0).permutation(len(data)), 5)
    errors, best = [], None
    for number, valid in enumerate(folds):
        train = np.concatenate([f for i, f in enumerate(folds) if i != number])
        error, weights = run_fold(data, train.tolist(), valid.tolist(), 'cuda')
        if best is None or error < best[0]:
            best = (error, weights)
        errors.append(error)
        gc.collect()
        print(f'fold {number}: {error:.4f}', flush=True)
    print(f'mean {np.mean(errors):.4f} best {best[0]:.4f}')


if __name__ == '__main__':
    main()
