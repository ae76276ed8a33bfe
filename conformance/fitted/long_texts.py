"""Texts of one length, which may be cut."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(8000, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 8000)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = [torch.zeros(1024, dtype=torch.long) for _ in range(64)]
for ids in DataLoader(data, batch_size=16):
    ids = ids.cuda()
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
