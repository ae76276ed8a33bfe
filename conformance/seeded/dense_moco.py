"""Momentum contrast on the centre cell of dense feature maps."""
import copy
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18


class TwoCrops(Dataset):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        base = torch.rand(3, self.size, self.size, generator=g)
        return base.flip(-1), (base + 0.1 * torch.randn(base.shape, generator=g))


def make_encoder(dim):
    net = resnet18(weights=None)
    trunk = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2)
    neck = nn.Sequential(nn.Conv2d(128, 256, 1), nn.ReLU(inplace=True), nn.Conv2d(256, dim, 1))
    return nn.Sequential(trunk, neck)


class DenseMoCo(nn.Module):
    def __init__(self, dim=256, momentum=0.996, temperature=0.2, queue_batches=256):
        super().__init__()
        self.momentum, self.temperature = momentum, temperature
        self.online = make_encoder(dim)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.negatives = deque(maxlen=queue_batches)

    @torch.no_grad()
    def _update_target(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o, 1 - self.momentum)

    @torch.no_grad()
    def _keys(self, view):
        grid = self.target(view)
        middle = grid.shape[-1] // 2
        return grid[:, :, middle, middle]

    def forward(self, view_q, view_k):
        grid = self.online(view_q)
        middle = grid.shape[-1] // 2
        q = F.normalize(grid[:, :, middle, middle], dim=1)
        self._update_target()
        keys = self._keys(view_k)
        k = F.normalize(keys, dim=1)

        pos = (q * k).sum(1, keepdim=True)
        if self.negatives:
            bank = F.normalize(torch.cat(list(self.negatives)), dim=1)
            logits = torch.cat([pos, q @ bank.T], 1)
        else:
            logits = torch.cat([pos, q @ k.roll(1, 0).T], 1)
        self.negatives.append(keys)
        labels = torch.zeros(len(q), dtype=torch.long, device=q.device)
        return F.cross_entropy(logits / self.temperature, labels)


def main():
    torch.manual_seed(3)
    device = 'cuda'
    model = DenseMoCo().to(device)
    optimizer = torch.optim.SGD(model.online.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    loader = DataLoader(TwoCrops(96 * 24, 224), batch_size=96, shuffle=True, drop_last=True)
    for step, (a, b) in enumerate(loader):
        loss = model(a.to(device), b.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, f'{loss.item():.4f}', 'queue', len(model.negatives), flush=True)


main()
