"""Each batch sits in a cycle, with its outputs: Python's collector comes by too seldom."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


class Batch:
    def __init__(self):
        self.inputs = torch.randn(8192, 1024).cuda()
        self.me = self


for step in range(60):
    batch = Batch()
    batch.outputs = model(batch.inputs)
    loss = F.mse_loss(batch.outputs, batch.inputs)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
