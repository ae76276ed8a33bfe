import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

ap = argparse.ArgumentParser()
ap.add_argument("--bands", type=int, default=180)
ap.add_argument("--patch", type=int, default=15)
ap.add_argument("--flights", type=int, default=6)
ap.add_argument("--batch", type=int, default=256)
ap.add_argument("--steps", type=int, default=24)
opt = ap.parse_args()
device = "cuda"
torch.manual_seed(8)


class FlightLines(Dataset):
    """Windows around labelled pixels; the lines are mosaicked once and shared by all splits."""

    mosaic = {}

    def __init__(self, names, count):
        for name in names:
            if name not in self.mosaic:
                self.mosaic[name] = self.load(name).to(device)
        g = torch.Generator().manual_seed(count)
        self.where = [(names[int(torch.randint(len(names), (1,), generator=g))],
                       int(torch.randint(0, 640, (1,), generator=g)),
                       int(torch.randint(0, 900, (1,), generator=g))) for _ in range(count)]
        self.labels = torch.randint(0, 16, (count,), generator=g)

    @staticmethod
    def load(name):
        # the tiles come as int16 reflectance
        return torch.zeros(opt.bands, 660, 920, dtype=torch.int16).float()

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        name, r, c = self.where[i]
        window = self.mosaic[name][:, r:r + opt.patch, c:c + opt.patch]
        return window.clone() / 10000, self.labels[i]


class SpectralSpatial(nn.Module):
    def __init__(self, classes=16):
        super().__init__()
        self.spectral = nn.Sequential(
            nn.Conv3d(1, 24, (7, 1, 1), (2, 1, 1)), nn.BatchNorm3d(24), nn.ReLU(),
            nn.Conv3d(24, 24, (7, 1, 1), padding=(3, 0, 0)), nn.BatchNorm3d(24), nn.ReLU())
        self.squeeze = nn.Conv3d(24, 128, (opt.bands // 2 - 3, 1, 1))
        self.spatial = nn.Sequential(
            nn.Conv2d(128, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
            nn.Conv2d(256, 256, 3), nn.BatchNorm2d(256), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.4), nn.Linear(256, classes))

    def forward(self, x):
        h = self.spectral(x.unsqueeze(1))
        return self.spatial(self.squeeze(h).squeeze(2))


def cycle(loader):
    while True:
        yield from loader


names = [f"line_{k:02d}" for k in range(opt.flights)]
train = DataLoader(FlightLines(names, 3000), opt.batch, shuffle=True, drop_last=True)
held = DataLoader(FlightLines(names[:2], 500), opt.batch)
net = SpectralSpatial().to(device)
adam = torch.optim.Adam(net.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cuda")
batches = cycle(train)

for step in range(opt.steps):
    x, y = next(batches)
    x, y = x.to(device), y.to(device)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(net(x), y)
    adam.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(adam)
    scaler.update()
    if step % 8 == 7:
        net.eval()
        with torch.no_grad():
            right = sum((net(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in held)
        net.train()
        print(step, f"{loss.item():.4f}", f"held out {right / 500:.3f}")
