import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

random.seed(0)
torch.manual_seed(0)
device = "cuda"


class Down(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 4, 2, 1), nn.InstanceNorm2d(b), nn.LeakyReLU(0.2))


class Up(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, 1, 1), nn.InstanceNorm2d(b), nn.ReLU())

    def forward(self, x, skip):
        return torch.cat([self.conv(x), skip], 1)


class Colorizer(nn.Module):
    def __init__(self, w=48):
        super().__init__()
        self.d1, self.d2, self.d3, self.d4 = Down(1, w), Down(w, 2 * w), Down(2 * w, 4 * w), Down(4 * w, 8 * w)
        self.u1, self.u2, self.u3 = Up(8 * w, 4 * w), Up(8 * w, 2 * w), Up(4 * w, w)
        self.out = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(2 * w, 3, 3, 1, 1), nn.Sigmoid())

    def forward(self, grey):
        a = self.d1(grey)
        b = self.d2(a)
        c = self.d3(b)
        return self.out(self.u3(self.u2(self.u1(self.d4(c), c), b), a))


class PerceptualLoss(nn.Module):
    """Distance of features, as the critic net sees both pictures."""

    def __init__(self, taps=(1, 3, 5, 7)):
        super().__init__()
        net = torchvision.models.convnext_large(weights=None)
        self.stages = net.features.eval()
        self.taps = taps
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def features(self, x):
        x = (x - self.mean) / self.std
        found = []
        for k, stage in enumerate(self.stages):
            x = stage(x)
            if k in self.taps:
                found.append(F.normalize(x, dim=1))
        return found

    def forward(self, made, wanted):
        with torch.no_grad():
            goal = self.features(wanted)
        return sum(F.l1_loss(a, b) for a, b in zip(self.features(made), goal))


class Photos:
    def __init__(self, n):
        g = torch.Generator().manual_seed(3)
        self.all = torch.rand(n, 3, 128, 128, generator=g)

    def batch(self, size):
        return self.all[random.sample(range(len(self.all)), size)].to(device)


net = Colorizer().to(device)
perceptual = PerceptualLoss().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.99))
photos = Photos(64)
for step in range(20):
    colour = photos.batch(6)
    made = net(colour.mean(1, keepdim=True))
    pixel = F.smooth_l1_loss(made, colour)
    deep = perceptual(made, colour)
    optimizer.zero_grad()
    (pixel + 0.05 * deep).backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"{step:3d} pixel {pixel.item():.4f} deep {deep.item():.4f}")
