"""Arrhythmia detection in 24 s of ECG with a transformer over 3000 frames; rotary positions, so attention is our own."""
import math

import torch
import torch.nn.functional as F
from torch import nn

device = 'cuda'
torch.manual_seed(0)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Rotary(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(dim // 2) / (dim // 2))
        self.register_buffer('cos', angle.cos(), persistent=False)
        self.register_buffer('sin', angle.sin(), persistent=False)

    def forward(self, q, k):
        n = q.size(-2)
        cos, sin = self.cos[:n], self.sin[:n]
        return rotate(q, cos, sin), rotate(k, cos, sin)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, rotary):
        super().__init__()
        self.heads, self.rotary = heads, rotary
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = self.rotary(q, k)
        w = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
        y = torch.matmul(F.softmax(w, dim=-1), v)
        return self.proj(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, rotary):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = SelfAttention(dim, heads, rotary)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class ECGNet(nn.Module):
    def __init__(self, leads=12, dim=256, heads=8, depth=6, classes=27):
        super().__init__()
        self.frames = nn.Conv1d(leads, dim, 8, stride=4, padding=2)
        rotary = Rotary(dim // heads, 4096)
        self.layers = nn.ModuleList(Layer(dim, heads, rotary) for _ in range(depth))
        self.out = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.frames(x).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))


model = ECGNet().to(device)
opt = torch.optim.AdamW(model.parameters(), 2e-4, weight_decay=0.05)
gen = torch.Generator().manual_seed(8)
weights = torch.rand(27, generator=gen).to(device) * 4
for step in range(12):
    signal = torch.randn(2, 12, 12000, generator=gen).to(device)
    labels = (torch.rand(2, 27, generator=gen) < 0.1).float().to(device)
    logits = model(signal)
    loss = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=weights)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 4 == 0:
        print(step, loss.item())
