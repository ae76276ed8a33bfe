import functools
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


def slopes(heads):
    return [2 ** (-8 * (i + 1) / heads) for i in range(heads)]


@functools.lru_cache(maxsize=None)
def alibi_bias(heads, length, device, dtype):
    position = torch.arange(length, device=device)
    distance = (position[None, :] - position[:, None]).to(dtype)
    causal = torch.full((length, length), float("-inf"), device=device, dtype=dtype).triu(1)
    slope = torch.tensor(slopes(heads), device=device, dtype=dtype)
    return slope[:, None, None] * distance + causal


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        bias = alibi_bias(self.heads, n, x.device, q.dtype)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab=8192, dim=1024, depth=6, heads=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


random.seed(5)
device = torch.device("cuda", 0)
model = LM().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)

for step in range(300):
    length = random.randrange(3072, 4096, 16)
    ids = torch.randint(0, 8192, (1, length + 1), device=device)
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 2 == 0:
        print(f"step {step} length {length} loss {loss.item():.3f}", flush=True)
