"""Decoder blocks in a plain loop: it fails with 9 GiB."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint  # noqa: F401  (for what is written in)

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        heads = self.attention(self.norm(x)).unflatten(2, (3, 16, -1)).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        return x + self.mlp(self.norm(x))


class Decoder(nn.Module):
    def __init__(self, width=1024, blocks=16, words=8192):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(6):
    ids = torch.randint(0, 8192, (16, 512)).cuda()
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
