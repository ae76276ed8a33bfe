"""Small U-Net trainer for road segmentation."""
import argparse
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


class RoadTiles(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, self.size, self.size, generator=g)
        mask = (img[:1] > 0.5).float()
        return img, mask


def double_conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.d1, self.d2, self.d3 = double_conv(3, c), double_conv(c, 2 * c), double_conv(2 * c, 4 * c)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.u2, self.u1 = double_conv(6 * c, 2 * c), double_conv(3 * c, c)
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        z = self.d3(self.pool(b))
        z = self.u2(torch.cat([self.up(z), b], 1))
        z = self.u1(torch.cat([self.up(z), a], 1))
        return self.head(z)


class Trainer:
    def __init__(self, model, train_set, val_set, args):
        self.model = model.to(args.device)
        self.args = args
        self.train_loader = DataLoader(train_set, batch_size=args.bs, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, batch_size=args.bs)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4)
        self.criterion = nn.BCEWithLogitsLoss()
        self.best = float("inf")

    def train_epoch(self):
        self.model.train()
        for img, mask in self.train_loader:
            img, mask = img.to(self.args.device), mask.to(self.args.device)
            loss = self.criterion(self.model(img), mask)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def validate(self):
        self.model.eval()
        self.val_loss = 0.0
        for img, mask in self.val_loader:
            img, mask = img.to(self.args.device), mask.to(self.args.device)
            self.val_loss += self.criterion(self.model(img), mask)
        self.val_loss = self.val_loss / len(self.val_loader)
        return self.val_loss.item()

    def fit(self):
        for epoch in range(self.args.epochs):
            self.train_epoch()
            v = self.validate()
            print(f"[{epoch}] val {v:.4f}")
            if v < self.best:
                self.best = v


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--bs", type=int, default=8)
    p.add_argument("--size", type=int, default=384)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--device", default="cuda")
    args = p.parse_args()
    Trainer(UNet(), RoadTiles(80, args.size), RoadTiles(160, args.size), args).fit()
