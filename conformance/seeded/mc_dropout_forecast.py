"""Electricity load forecasts with a temporal convolution network; uncertainty from Monte Carlo dropout."""
import argparse

import torch
from torch import nn

device = 'cuda'


class Residual(nn.Module):
    def __init__(self, width, dilation, p=0.1):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation)
        self.gate = nn.Conv1d(width, width, 1)
        self.drop = nn.Dropout(p)
        self.norm = nn.GroupNorm(8, width)

    def forward(self, x):
        y = self.conv(nn.functional.pad(x, (self.pad, 0)))
        return self.norm(x + self.drop(torch.tanh(y) * torch.sigmoid(self.gate(y))))


class TCN(nn.Module):
    def __init__(self, features=12, width=256, layers=8, horizon=48):
        super().__init__()
        self.inp = nn.Conv1d(features, width, 1)
        self.blocks = nn.ModuleList(Residual(width, 2 ** i) for i in range(layers))
        self.out = nn.Conv1d(width, horizon * 3, 1)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x[..., -1:]).view(x.size(0), -1, 3)


def pinball(q, y):
    levels = torch.tensor([0.1, 0.5, 0.9], device=y.device)
    err = y.unsqueeze(-1) - q
    return torch.maximum(levels * err, (levels - 1) * err).mean()


class Forecaster:
    def __init__(self, args):
        self.args = args
        self.net = TCN().to(device)
        self.opt = torch.optim.AdamW(self.net.parameters(), 1e-3)
        self.gen = torch.Generator().manual_seed(3)
        self.best = float('inf')

    def windows(self, n):
        for _ in range(n):
            x = torch.randn(self.args.batch, 12, 672, generator=self.gen)
            y = torch.randn(self.args.batch, 48, generator=self.gen)
            yield x.to(device), y.to(device)

    def train_epoch(self):
        self.net.train()
        for x, y in self.windows(self.args.steps):
            loss = pinball(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    def spread(self, x):
        """Mean and spread of the median over several passes with dropout active."""
        self.net.train()
        draws = torch.stack([self.net(x)[..., 1] for _ in range(self.args.draws)])
        return draws.mean(0), draws.std(0)

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        total = sum(pinball(self.net(x), y).item() for x, y in self.windows(4))
        return total / 4

    def calibration(self):
        inside = []
        for x, y in self.windows(3):
            mean, std = self.spread(x)
            inside.append(((y - mean).abs() < 1.64 * std).float().mean().item())
        return sum(inside) / len(inside)

    def fit(self):
        for epoch in range(self.args.epochs):
            train, valid = self.train_epoch(), self.validate()
            self.best = min(self.best, valid)
            print(f'epoch {epoch} train {train:.4f} valid {valid:.4f}')
            if epoch % 2 == 1:
                print(f'   coverage of the 90 % band: {self.calibration():.2f}')


if __name__ == '__main__':
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=64)
    ap.add_argument('--steps', type=int, default=8)
    ap.add_argument('--epochs', type=int, default=4)
    ap.add_argument('--draws', type=int, default=20)
    Forecaster(ap.parse_args()).fit()
