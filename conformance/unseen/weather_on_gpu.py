"""Next-day weather model. Dataset goes to the gpu as a whole because the loader was the bottleneck."""
import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader, random_split

CHANNELS, H, W = 20, 128, 256


def load_era(days, device):
    # normally: np.load of the zarr export, float32
    fields = torch.empty(days, CHANNELS, H, W, device=device)
    fields.normal_()
    return fields


class ConvNext(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.GroupNorm(1, c)
        self.pw = nn.Sequential(nn.Conv2d(c, 4 * c, 1), nn.GELU(), nn.Conv2d(4 * c, c, 1))

    def forward(self, x):
        return x + self.pw(self.norm(self.dw(x)))


class Forecaster(nn.Module):
    def __init__(self, c=96, n=6):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(CHANNELS, c, 2, 2), *[ConvNext(c) for _ in range(n)],
                                 nn.ConvTranspose2d(c, CHANNELS, 2, 2))

    def forward(self, x):
        return x + self.net(x)


def main():
    device = torch.device("cuda")
    data = load_era(6000, device)
    ds = TensorDataset(data[:-1], data[1:])
    n_val = len(ds) // 10
    train, val = random_split(ds, [len(ds) - n_val, n_val])
    loader = DataLoader(train, batch_size=48, shuffle=True, drop_last=True)
    model = Forecaster().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    for epoch in range(1):
        for i, (x, y) in enumerate(loader):
            x, y = x.to(device), y.to(device)
            loss = nn.functional.l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 5 == 0:
                print(f"epoch {epoch} batch {i}/{len(loader)} l1 {loss.item():.4f}")
            if i == 25:
                break
    print("done")


if __name__ == "__main__":
    main()
