"""3-D segmentation of brain volumes, whole volumes, no patches."""
import torch
from torch import nn


def twice(cin, cout):
    return nn.Sequential(nn.Conv3d(cin, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01),
                         nn.Conv3d(cout, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01))


class VolumeNet(nn.Module):
    def __init__(self, channels=(4, 32, 64, 128), classes=4):
        super().__init__()
        self.down = nn.ModuleList(twice(a, b) for a, b in zip(channels, channels[1:]))
        self.pool = nn.MaxPool3d(2)
        self.lift = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(channels[1:], channels[2:]))
        self.up = nn.ModuleList(twice(2 * a, a) for a in channels[1:-1])
        self.classes = nn.Conv3d(channels[1], classes, 1)

    def forward(self, x):
        sides = []
        for level, block in enumerate(self.down):
            x = block(x if level == 0 else self.pool(x))
            sides.append(x)
        sides.pop()
        for lift, block in zip(reversed(self.lift), reversed(self.up)):
            x = block(torch.cat([sides.pop(), lift(x)], 1))
        return self.classes(x)


class DiceLoss(nn.Module):
    def forward(self, logits, truth):
        p = logits.softmax(1)
        overlap = (p * truth).sum((2, 3, 4))
        size = p.sum((2, 3, 4)) + truth.sum((2, 3, 4))
        return 1 - (2 * overlap / (size + 1e-5)).mean()


class Study:
    """One scan: four modalities, a map of four classes."""

    shape = (160, 192, 160)

    def __init__(self, number):
        self.number = number

    def tensors(self):
        scan = torch.randn(1, 4, *self.shape, device="cuda")
        truth = torch.zeros(1, 4, *self.shape, device="cuda")
        return scan, truth


def train(studies, epochs=1):
    net = VolumeNet().cuda()
    dice = DiceLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.99, nesterov=True)
    for epoch in range(epochs):
        for study in studies:
            scan, truth = study.tensors()
            loss = dice(net(scan), truth)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            print(epoch, study.number, loss.item())
    return net


if __name__ == "__main__":
    train([Study(n) for n in range(4)])
