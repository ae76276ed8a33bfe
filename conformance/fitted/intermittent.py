"""Texts of many lengths in batches that a shuffle makes: whether the long ones meet is chance. The argument is the seed."""

import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(int(sys.argv[1]))


def packed(texts):
    return torch.cat(texts)


model = nn.Sequential(nn.Embedding(8000, 128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 8000)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
data = [torch.zeros(4000 if index % 6 == 5 else 100, dtype=torch.long) for index in range(128)]
for ids in DataLoader(data, batch_size=4, shuffle=True, collate_fn=packed):
    ids = ids.cuda()
    loss = F.cross_entropy(model(ids), ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
