"""Super resolution x2, 192 px crops."""
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


class Crops(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.rand(3, 192, 192)


class RCAB(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(c, c, 3, padding=1))
        self.ca = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // 8, 1), nn.ReLU(), nn.Conv2d(c // 8, c, 1), nn.Sigmoid())

    def forward(self, x):
        h = self.body(x)
        return x + h * self.ca(h)


class SRNet(nn.Module):
    def __init__(self, c=64, n=12):
        super().__init__()
        self.head = nn.Conv2d(3, c, 3, padding=1)
        self.body = nn.Sequential(*[RCAB(c) for _ in range(n)])
        self.tail = nn.Sequential(nn.Conv2d(c, 12, 3, padding=1), nn.PixelShuffle(2))

    def forward(self, x):
        h = self.head(x)
        return self.tail(h + self.body(h))


def psnr(a, b):
    return -10 * torch.log10((a - b).pow(2).mean()).item()


def main():
    net = SRNet().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    for epoch in range(2):
        net.train()
        for hr in DataLoader(Crops(512), batch_size=128, shuffle=True, drop_last=True):
            hr = hr.cuda()
            lr = nn.functional.avg_pool2d(hr, 2)
            loss = nn.functional.l1_loss(net(lr), hr)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        scores = []
        with torch.no_grad():
            for hr in DataLoader(Crops(128), batch_size=64):
                hr = hr.cuda()
                scores.append(psnr(net(nn.functional.avg_pool2d(hr, 2)), hr))
        print(f"epoch {epoch} loss {loss.item():.4f} psnr {sum(scores) / len(scores):.2f}")


if __name__ == "__main__":
    main()
