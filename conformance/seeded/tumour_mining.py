"""3-D lesion classification with a record of the hardest patches per class, for the next epoch's sampler."""
import heapq
from collections import defaultdict, deque

import torch
import torch.nn as nn
import torch.nn.functional as F

device = 'cuda'


class Block3d(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv3d(cin, cout, 3, stride, 1, bias=False)
        self.norm1 = nn.InstanceNorm3d(cout, affine=True)
        self.conv2 = nn.Conv3d(cout, cout, 3, 1, 1, bias=False)
        self.norm2 = nn.InstanceNorm3d(cout, affine=True)
        self.skip = nn.Conv3d(cin, cout, 1, stride)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


class Net3d(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = Block3d(2, 16)
        self.body = nn.Sequential(Block3d(16, 32, 2), Block3d(32, 64, 2), Block3d(64, 128, 2))
        self.head = nn.Linear(128, classes)

    def forward(self, x):
        y = self.body(self.stem(x))
        return self.head(y.mean((2, 3, 4)))


class HardPatches:
    """Keeps, for each epoch and class, the patches with the highest loss: (loss, tie, case, context)."""

    def __init__(self, per_class=64):
        self.per_class = per_class
        self.book = defaultdict(lambda: defaultdict(list))
        self.recent = deque(maxlen=4)
        self.tie = 0

    def offer(self, epoch, patches, labels, losses, cases):
        self.recent.append(losses)
        for i, label in enumerate(labels.tolist()):
            heap = self.book[epoch][label]
            centre = patches[i, :, 24:40, 24:40, 24:40]
            entry = (cases[i] % 97, self.tie, cases[i], centre)
            self.tie += 1
            if len(heap) < self.per_class:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)

    def cases(self, epoch):
        return sorted({e[2] for heap in self.book[epoch].values() for e in heap})


def batches(epoch, n=24, size=4):
    gen = torch.Generator().manual_seed(epoch)
    for b in range(n):
        labels = torch.randint(4, (size,), generator=gen)
        yield torch.zeros(size, 2, 64, 64, 64) + b, labels, list(range(b * size, (b + 1) * size))


model = Net3d().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
hard = HardPatches()
for epoch in range(4):
    model.train()
    running = 0.0
    for volume, label, case in batches(epoch):
        volume = volume.to(device).repeat_interleave(4, 0)
        label = label.repeat_interleave(4)
        case = [c for c in case for _ in range(4)]
        gain = torch.rand(volume.size(0), 1, 1, 1, 1).to(device)
        volume = volume * (0.9 + 0.2 * gain)
        target = label.to(device)
        out = model(volume)
        losses = F.cross_entropy(out, target, reduction='none')
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        running += losses.mean().item()
        hard.offer(epoch, volume, label, losses.detach(), case)
    print(f'epoch {epoch} loss {running / 24:.4f} hard cases {len(hard.cases(epoch))}')
