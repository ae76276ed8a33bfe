"""Segmentation with a metric object that joins everything at the end of an epoch."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note, size_of
from loop import main


class Auroc:
    def __init__(self):
        self.preds, self.target = [], []

    def update(self, p, t):
        self.preds.append(p)
        self.target.append(t)

    def compute(self):
        good = sum((p[:, :1, :2, :2] > 0.5).float().mean() for p in self.preds[-4:]) / 4
        return good

    def reset(self):
        self.preds.clear()
        self.target.clear()


class Tiny(nn.Module):
    def __init__(self, w=32, k=8):
        super().__init__()
        self.d1, self.d2, self.d3 = nn.Conv2d(3, w, 3, 1, 1), nn.Conv2d(w, 2 * w, 3, 2, 1), nn.Conv2d(2 * w, 4 * w, 3, 2, 1)
        self.u2, self.u1, self.o = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2), nn.Conv2d(w, k, 1)

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(a))
        c = F.relu(self.d3(b))
        return self.o(self.u1(F.relu(self.u2(c)) + b) + a)


def run(epochs=30):
    net, metric = Tiny().cuda(), Auroc()
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        net.train()
        for _ in range(5):
            x = torch.randn(16, 3, 256, 256, device="cuda")
            t = torch.zeros(16, 256, 256, dtype=torch.long, device="cuda")
            loss = F.cross_entropy(net(x), t)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            for _ in range(6):
                x = torch.randn(16, 3, 256, 256, device="cuda")
                t = torch.zeros(16, 256, 256, dtype=torch.long, device="cuda")
                metric.update(net(x).softmax(1), t)
                note(size_of(metric.preds + metric.target))
        print(epoch, metric.compute().item())


if __name__ == "__main__":
    main(globals())
