"""Pictures of many sizes, each larger than the last: the pieces of the cache fit none of the next."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 8, 3, padding=1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for size in range(512, 1024, 32):
    images, labels = torch.randn(4, 3, size, size).cuda(), torch.zeros(4, size, size, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
