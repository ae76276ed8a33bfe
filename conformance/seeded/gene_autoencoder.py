"""Denoising autoencoder for single-cell counts (20k genes)."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Cells(Dataset):
    def __init__(self, cells, genes):
        self.cells, self.genes = cells, genes

    def __len__(self):
        return self.cells

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.poisson(torch.full((self.genes,), 0.3), generator=g)


class DAE(nn.Module):
    def __init__(self, genes, hidden, latent):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(genes, hidden), nn.LayerNorm(hidden), nn.ReLU(),
            nn.Linear(hidden, hidden // 2), nn.LayerNorm(hidden // 2), nn.ReLU(),
            nn.Linear(hidden // 2, latent))
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden // 2), nn.ReLU(),
            nn.Linear(hidden // 2, hidden), nn.ReLU(),
            nn.Linear(hidden, genes))

    def forward(self, counts):
        x = torch.log1p(counts)
        x = x / x.norm(dim=1, keepdim=True).clamp_min(1e-6)
        z = self.encoder(F.dropout(x, 0.2, self.training))
        return self.decoder(z), z


def poisson_nll(log_rate, counts):
    return F.poisson_nll_loss(log_rate, counts, log_input=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--genes', type=int, default=20_000)
    p.add_argument('--hidden', type=int, default=4864)
    p.add_argument('--latent', type=int, default=64)
    p.add_argument('--batch', type=int, default=128)
    p.add_argument('--wd', type=float, default=1e-5)
    args = p.parse_args()

    torch.manual_seed(2)
    device = 'cuda'
    model = DAE(args.genes, args.hidden, args.latent).to(device)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=args.wd)
    loader = DataLoader(Cells(args.batch * 12, args.genes), args.batch, shuffle=True, drop_last=True)
    for step, counts in enumerate(loader):
        counts = counts.to(device)
        log_rate, z = model(counts)
        loss = poisson_nll(log_rate, counts) + 1e-4 * z.square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(f'step {step:3d} nll {loss.item():.4f}', flush=True)


if __name__ == '__main__':
    main()
