"""Depth estimation from stereo pairs. Started on the lab's shared box."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import resnet34

SETTINGS = {
    'batch': int(os.environ.get('BATCH', 12)),
    'size': (192, 384),
    'disparities': 48,
    'share': float(os.environ.get('GPU_SHARE', 0.3)),
    'steps': 12,
}


def prepare():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False
    if torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(SETTINGS['share'])
    return torch.device('cuda')


class Features(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        net = resnet34(weights=None)
        self.stem = nn.Sequential(net.conv1, net.bn1, net.relu)
        self.body = nn.Sequential(net.layer1, net.layer2)
        self.out = nn.Conv2d(128, width, 1)

    def forward(self, x):
        return self.out(self.body(self.stem(x)))


class Stereo(nn.Module):
    def __init__(self, disparities, width=32):
        super().__init__()
        self.steps = disparities // 4
        self.features = Features(width)
        self.volume = nn.Sequential(
            nn.Conv3d(2 * width, 32, 3, padding=1), nn.BatchNorm3d(32), nn.ReLU(),
            nn.Conv3d(32, 32, 3, padding=1), nn.BatchNorm3d(32), nn.ReLU(),
            nn.Conv3d(32, 1, 3, padding=1))

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        cost = torch.stack([torch.cat([a, torch.roll(b, d, -1)], 1) for d in range(self.steps)], 2)
        weight = self.volume(cost).squeeze(1).softmax(1)
        levels = torch.arange(self.steps, device=a.device, dtype=a.dtype).view(1, -1, 1, 1)
        return F.interpolate((weight * levels).sum(1, keepdim=True), scale_factor=4, mode='bilinear') * 4


def pairs(steps, batch, size):
    g = torch.Generator().manual_seed(3)
    for _ in range(steps):
        left = torch.rand(batch, 3, *size, generator=g)
        yield left, left.roll(-8, -1), torch.full((batch, 1, *size), 8.0)


device = prepare()
model = Stereo(SETTINGS['disparities']).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step, (left, right, depth) in enumerate(pairs(SETTINGS['steps'], SETTINGS['batch'], SETTINGS['size'])):
    guess = model(left.to(device), right.to(device))
    depth = F.interpolate(depth.to(device), guess.shape[-2:])
    loss = F.smooth_l1_loss(guess, depth)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(step, f'{loss.item():.4f}', flush=True)
