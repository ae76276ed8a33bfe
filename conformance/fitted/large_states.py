"""Parameters, gradients and Adam's two states of each fill the card before there is an activation."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(3072, 3072), nn.ReLU())], nn.Linear(3072, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    x, y = torch.randn(64, 3072).cuda(), torch.zeros(64, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
