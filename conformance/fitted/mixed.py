"""An MLP mixer in float32, where 16 bits would do."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ModuleList([nn.Linear(1024, 1024) for _ in range(12)])
        self.last = nn.Linear(1024, 10)

    def forward(self, x):
        for row in self.rows:
            x = F.relu(row(x))
        return self.last(x)


model = Mixer().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    x, y = torch.randn(16384, 1024).cuda(), torch.zeros(16384, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
