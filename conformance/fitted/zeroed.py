"""Gradients that are set to zero, and stay."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
layers = [layer for _ in range(24) for layer in (nn.Linear(2048, 2048), nn.GELU())]
model = nn.Sequential(*layers, nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
for step in range(4):
    optimizer.zero_grad(set_to_none=False)
    x, y = torch.randn(4096, 2048).cuda(), torch.zeros(4096, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
