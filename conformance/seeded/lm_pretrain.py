"""Pretrain a decoder-only language model on byte-pair ids, gradient accumulation over small batches."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-6)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = RMSNorm(width), RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        x = x + self.o(a)
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, vocab=16000, width=1280, depth=14, heads=20):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.norm = RMSNorm(width)

    def forward(self, ids, labels):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.embed.weight.T
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def lr_at(step, warm, total, peak):
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--steps', type=int, default=6)
    p.add_argument('--accumulate', type=int, default=4)
    p.add_argument('--micro', type=int, default=2)
    p.add_argument('--length', type=int, default=256)
    p.add_argument('--lr', type=float, default=3e-4)
    a = p.parse_args()
    torch.manual_seed(0)
    device = 'cuda'
    corpus = torch.randint(0, 16000, (100_000,))
    model = Decoder().to(device)
    print(f'{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters', flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=0.1)
    for step in range(a.steps):
        for group in optimizer.param_groups:
            group['lr'] = lr_at(step, 2, a.steps, a.lr)
        shown = 0.0
        for _ in range(a.accumulate):
            at = torch.randint(0, len(corpus) - a.length - 1, (a.micro,))
            rows = torch.stack([corpus[i:i + a.length + 1] for i in at]).to(device)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(rows[:, :-1], rows[:, 1:]) / a.accumulate
            loss.backward()
            shown += loss.item()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(step, f'{shown:.3f}', flush=True)


if __name__ == '__main__':
    main()
