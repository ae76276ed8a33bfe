import torch
import torch.nn as nn


def conv_block(c_in, c_out):
    return nn.Sequential(
        nn.Conv3d(c_in, c_out, 3, padding=1), nn.InstanceNorm3d(c_out, affine=True), nn.LeakyReLU(0.01),
        nn.Conv3d(c_out, c_out, 3, padding=1), nn.InstanceNorm3d(c_out, affine=True), nn.LeakyReLU(0.01))


class UNet3D(nn.Module):
    def __init__(self, c_in=4, classes=4, width=24, depth=4):
        super().__init__()
        sizes = [min(width * 2 ** i, 320) for i in range(depth + 1)]
        self.down = nn.ModuleList(conv_block(a, b) for a, b in zip([c_in] + sizes[:-1], sizes))
        self.pool = nn.MaxPool3d(2)
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, stride=2) for a, b in zip(sizes[:-1], sizes[1:]))
        self.merge = nn.ModuleList(conv_block(2 * a, a) for a in sizes[:-1])
        self.out = nn.Conv3d(sizes[0], classes, 1)

    def _run(self, block, x):
        return block(x)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = self._run(block, x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            x = self._run(merge, torch.cat([up(x), skips.pop()], 1))
        return self.out(x)


class DiceCELoss(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.ce = nn.CrossEntropyLoss()

    def forward(self, logits, target):
        p = logits.softmax(1)
        dice = 0
        for c in range(1, self.classes):
            t = (target == c).float()
            inter = (p[:, c] * t).sum()
            dice = dice + 1 - (2 * inter + 1) / (p[:, c].sum() + t.sum() + 1)
        return self.ce(logits, target) + dice / (self.classes - 1)
