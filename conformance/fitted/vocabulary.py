"""A language model whose loss over 32,768 words is larger than all the rest."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(32768, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256), nn.Linear(256, 32768)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
for step in range(4):
    ids = torch.randint(0, 32768, (4, 1025)).cuda()
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
