"""Adam's states lie beside the activations, and wait for the step."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(2048, 2048), nn.ReLU())], nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
for step in range(4):
    x, y = torch.randn(8192, 2048).cuda(), torch.zeros(8192, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
