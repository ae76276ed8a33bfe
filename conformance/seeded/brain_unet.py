"""Brain tumour segmentation in 3-D: residual U-Net, Dice loss, patches of 96^3."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = 'cuda'


class Patches(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        s = self.size
        return torch.full((4, s, s, s), i / self.n), torch.full((s, s, s), i % 4)


class Unit(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.a = nn.Sequential(nn.Conv3d(cin, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01))
        self.b = nn.Sequential(nn.Conv3d(cout, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True))
        self.skip = nn.Conv3d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        return F.leaky_relu(self.b(self.a(x)) + self.skip(x), 0.01)


class Level(nn.Module):
    def __init__(self, cin, cout, depth=2):
        super().__init__()
        self.units = nn.ModuleList(Unit(cin if i == 0 else cout, cout) for i in range(depth))

    def forward(self, x):
        for unit in self.units:
            x = unit(x)
        return x


class ResUNet(nn.Module):
    def __init__(self, cin=4, classes=4, widths=(24, 48, 96, 192)):
        super().__init__()
        self.down = nn.ModuleList()
        c = cin
        for w in widths:
            self.down.append(Level(c, w))
            c = w
        self.up = nn.ModuleList(Level(a + b, b) for a, b in zip(widths[:0:-1], widths[-2::-1]))
        self.out = nn.Conv3d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for i, level in enumerate(self.down):
            if i:
                x = F.max_pool3d(x, 2)
            x = level(x)
            skips.append(x)
        skips.pop()
        for level in self.up:
            x = torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1)
            x = level(x)
        return self.out(x)


def dice_loss(logits, target):
    p = logits.softmax(1)
    t = F.one_hot(target, p.size(1)).movedim(-1, 1).to(p.dtype)
    inter = (p * t).sum((0, 2, 3, 4))
    return 1 - (2 * inter / (p.sum((0, 2, 3, 4)) + t.sum((0, 2, 3, 4)) + 1e-5)).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--size', type=int, default=96)
    ap.add_argument('--batch', type=int, default=2)
    ap.add_argument('--epochs', type=int, default=2)
    args = ap.parse_args()
    model = ResUNet().to(device)
    opt = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.99, nesterov=True, weight_decay=3e-5)
    loader = DataLoader(Patches(20, args.size), args.batch, shuffle=True)
    history = []
    for epoch in range(args.epochs):
        total = 0.0
        for image, label in loader:
            loss = dice_loss(model(image.to(device)), label.to(device))
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 12)
            opt.step()
            total += loss.item()
        history.append(total / len(loader))
        print(f'epoch {epoch} dice loss {history[-1]:.4f}')


if __name__ == '__main__':
    main()
