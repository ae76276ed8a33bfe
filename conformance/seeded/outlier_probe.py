"""Train a small GPT under bf16 autocast and watch the residual stream for outlier features."""
import contextlib
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, width, depth, heads, context):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ResidualWatch(contextlib.AbstractContextManager):
    """with ResidualWatch(model) as watch: ... ; watch.report()"""

    def __init__(self, model, every=1):
        self.every, self.calls = every, 0
        self.seen = defaultdict(list)
        self.handles = [b.register_forward_hook(self._make(f'block{i}')) for i, b in enumerate(model.blocks)]

    def _make(self, name):
        def record(module, inputs, output):
            self.calls += 1
            if self.calls % self.every == 0:
                self.seen[name].append(output.detach())
        return record

    def report(self):
        for name, values in self.seen.items():
            spread = [float(torch.as_tensor(v).float().abs().max()) for v in values]
            print(f'{name:8s} n={len(spread)} largest={max(spread):.3f}')

    def __exit__(self, *exc):
        for handle in self.handles:
            handle.remove()


def main():
    torch.manual_seed(0)
    device = 'cuda'
    model = GPT(vocab=16384, width=640, depth=10, heads=10, context=512).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
    data = torch.randint(0, 16384, (200_000,))
    with ResidualWatch(model) as watch:
        for step in range(45):
            at = torch.randint(0, len(data) - 513, (8,))
            chunk = torch.stack([data[i:i + 513] for i in at]).to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                logits = model(chunk[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                print('step', step, f'{loss.item():.3f}', flush=True)
        watch.report()


if __name__ == '__main__':
    main()
