"""Cell segmentation. Training on crops, validation on whole slides."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note, allocated
from loop import main


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.down = nn.ModuleList([block(3, w), block(w, 2 * w), block(2 * w, 4 * w)])
        self.mid = block(4 * w, 8 * w)
        self.up = nn.ModuleList([block(12 * w, 4 * w), block(6 * w, 2 * w), block(3 * w, w)])
        self.out = nn.Conv2d(w, 2, 1)

    def forward(self, x):
        skips = []
        for d in self.down:
            x = d(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for u in self.up:
            x = u(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], 1))
        return self.out(x)


def dice(p, t):
    p = p.softmax(1)[:, 1]
    return 1 - 2 * (p * t).sum() / (p.sum() + t.sum() + 1)


def validate(net, slides):
    net.eval()
    scores = []
    for _ in range(slides):
        slide, truth = torch.randn(1, 3, 2048, 2048, device="cuda"), torch.zeros(1, 2048, 2048, device="cuda")
        before = allocated()
        pred = net(slide)
        note(allocated() - before - pred.nbytes)
        scores.append(1 - dice(pred, truth).item())
        del pred
    net.train()
    return sum(scores) / len(scores)


def cells(epochs=3):
    net = UNet().cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    for epoch in range(epochs):
        for _ in range(5):
            crop, mask = torch.randn(4, 3, 256, 256, device="cuda"), torch.zeros(4, 256, 256, device="cuda")
            loss = dice(net(crop), mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, validate(net, 3))


if __name__ == "__main__":
    main(globals())
