import math

import torch
import torch.nn as nn

from note import note


kept = []


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.o = nn.Linear(dim, dim)

    def split(self, x):
        b, n, d = x.shape
        return x.reshape(b, n, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = torch.matmul(q, k.transpose(-1, -2))
        note(sum(kept) + weights.nbytes)
        weights = weights / math.sqrt(q.size(-1))
        kept.append(weights.nbytes)
        weights = weights.softmax(dim=-1)
        y = torch.matmul(weights, v).transpose(1, 2).reshape_as(x)
        return self.o(y)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class PointNetFormer(nn.Module):
    def __init__(self, dim=256, heads=8, depth=8, classes=13):
        super().__init__()
        self.embed = nn.Linear(6, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.seg = nn.Linear(dim, classes)

    def forward(self, pts):
        x = self.embed(pts)
        for layer in self.layers:
            x = layer(x)
        return self.seg(x)


net = PointNetFormer().cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10)
crit = nn.CrossEntropyLoss()

for it in range(10):
    # one room per step, downsampled to 6144 points
    points = torch.rand(1, 6144, 6).cuda()
    label = torch.randint(0, 13, (1, 6144)).cuda()
    logits = net(points)
    loss = crit(logits.transpose(1, 2), label)
    kept.clear()
    opt.zero_grad()
    loss.backward()
    opt.step()
    scheduler.step()
    print("iter", it)
