"""Denoises micro-CT slices: DnCNN with an activation that recomputes its derivative from the output."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class SmoothGate(torch.autograd.Function):
    """y = x * sigmoid(x); two of its three factors can be had from what backward is given."""

    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        y = x * gate
        ctx.save_for_backward(gate)
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        gate, = ctx.saved_tensors
        return grad * (gate + ctx.y * (1 - gate))


class Gate(nn.Module):
    def forward(self, x):
        return SmoothGate.apply(x)


class Slices(Dataset):
    def __init__(self, n, side=96):
        g = torch.Generator().manual_seed(0)
        self.clean = torch.rand(n, 1, side, side, generator=g)
        self.noise = torch.Generator().manual_seed(9)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        clean = self.clean[i]
        return clean + 0.1 * torch.randn(clean.shape, generator=self.noise), clean


def dncnn(depth, width):
    layers = [nn.Conv2d(1, width, 3, padding=1), nn.ReLU(inplace=True)]
    for k in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
        layers.append(Gate() if k % 4 == 3 else nn.ReLU(inplace=True))
    return nn.Sequential(*layers, nn.Conv2d(width, 1, 3, padding=1))


def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a, b) + 1e-8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    device = "cuda"
    torch.manual_seed(0)
    loader = DataLoader(Slices(160), args.batch, shuffle=True, drop_last=True)
    net = dncnn(args.depth, args.width).to(device)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, total_steps=args.epochs * len(loader))
    for epoch in range(args.epochs):
        began, total, quality = time.time(), 0.0, 0.0
        for noisy, clean in loader:
            noisy, clean = noisy.to(device), clean.to(device)
            residual = net(noisy)
            loss = F.mse_loss(residual, noisy - clean)
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            total += loss.item()
            with torch.no_grad():
                quality += psnr(noisy - residual, clean).item()
        print(f"epoch {epoch} loss {total / len(loader):.5f} psnr {quality / len(loader):.2f} "
              f"({time.time() - began:.1f} s)")


if __name__ == "__main__":
    main()
