"""Regression over documents of any length, ALiBi attention. Lengths are not padded, to save compute."""
from functools import lru_cache

import torch
from torch import nn
from torch.nn import functional as F

from note import note

HEADS = 16
cached = []


@lru_cache(maxsize=None)
def alibi(n, heads=HEADS, device="cuda"):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)], device=device)
    pos = torch.arange(n, device=device)
    dist = (pos[None, :] - pos[:, None]).abs().neg()
    cached.append(heads * n * n * 4)
    note(sum(cached[:-1]))  # the newest may be what does not fit
    return slopes[:, None, None] * dist[None]


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=alibi(n).unsqueeze(0))
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.ff(x)


model = nn.Sequential(*[Block(512) for _ in range(2)]).cuda()
head = nn.Linear(512, 1).cuda()
opt = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)

lengths = [1024 + (i * 37) % 101 * 8 for i in range(75)]
for i, n in enumerate(lengths):
    doc = torch.randn(1, n, 512, device="cuda")
    target = torch.randn(1, 1, device="cuda")
    loss = F.mse_loss(head(model(doc).mean(1)), target)
    loss.backward()
    opt.step()
    opt.zero_grad()
    if i % 20 == 0:
        print(i, n)
