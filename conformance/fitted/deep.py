"""Blocks whose weights take most of the memory, with their gradients and states."""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


model = nn.Sequential(*[Block(1024) for _ in range(12)]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    loss = model(torch.zeros(256, 1024).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
