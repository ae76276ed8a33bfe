"""An embedding of many words before a small model: it takes most of the memory, with its gradient and states."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(400000, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 64))
model.cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    ids = torch.zeros(64, 128, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
