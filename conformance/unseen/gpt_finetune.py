from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab=32000, dim=1792, depth=8, heads=28, context=768):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def batch(size, context=768):
    ids = torch.randint(0, 32000, (size, context + 1), device="cuda")
    return ids[:, :-1], ids[:, 1:]


@torch.no_grad()
def evaluate(model, batches=2):
    model.eval()
    losses = [model(*batch(6)) for _ in range(batches)]
    model.train()
    return torch.stack(losses).mean().item()


with torch.device("cuda"):
    model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
recent = deque(maxlen=20)
history = []
for step in range(8):
    loss = model(*batch(6))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recent.append(loss.detach())
    if step % 4 == 3:
        history.append((step, torch.stack(tuple(recent)).mean().item(), evaluate(model)))
        print(*history[-1], flush=True)
