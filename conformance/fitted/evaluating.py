"""A validation that keeps the graphs of its outputs: it fails with 4 GiB."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU())], nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    model.train()
    for step in range(4):
        x, y = torch.randn(2048, 1024).cuda(), torch.randint(0, 10, (2048,)).cuda()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    outputs = []
    for step in range(40):
        x = torch.randn(2048, 1024).cuda()
        outputs.append(model(x))
    print("validated", len(outputs))
