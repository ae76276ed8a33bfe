"""Contact prediction for proteins: a transformer over residues."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Positions(nn.Module):
    """Sines and cosines of the place in the chain."""

    def __init__(self, width, longest=2048):
        super().__init__()
        rate = torch.exp(-math.log(10_000) * torch.arange(0, width, 2) / width)
        angle = torch.arange(longest)[:, None] * rate
        self.register_buffer('table', torch.cat([angle.sin(), angle.cos()], 1), persistent=False)

    def forward(self, x):
        return x + self.table[:x.shape[1]]


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.size, self.dropout = heads, width // heads, dropout
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.size)
        weights = F.dropout(scores.softmax(-1), self.dropout, self.training)
        y = torch.matmul(weights, v)
        return self.out(y.transpose(1, 2).flatten(2))


class Trunk(nn.Module):
    def __init__(self, width=512, heads=8, depth=8, dropout=0.1):
        super().__init__()
        self.residues = nn.Embedding(24, width)
        self.positions = Positions(width)
        self.attend = nn.ModuleList(Attention(width, heads, dropout) for _ in range(depth))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.left, self.right = nn.Linear(width, 64), nn.Linear(width, 64)

    def forward(self, residues):
        x = self.positions(self.residues(residues))
        for attend, norm, feed in zip(self.attend, self.norms, self.feed):
            x = x + attend(norm(x))
            x = x + feed(x)
        return self.left(x) @ self.right(x).transpose(1, 2)


def main():
    torch.manual_seed(0)
    device = 'cuda'
    model = Trunk().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    g = torch.Generator().manual_seed(9)
    lengths = [320, 512, 448, 640, 768, 960, 1152, 1024, 1280, 1408, 704, 512]
    for step, length in enumerate(lengths):
        residues = torch.randint(0, 24, (2, length), generator=g).to(device)
        contacts = (torch.rand(2, length, length, generator=g) < 0.02).float().to(device)
        logits = model(residues)
        loss = F.binary_cross_entropy_with_logits(logits, contacts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print('step', step, 'length', length, f'{loss.item():.4f}', flush=True)


if __name__ == '__main__':
    main()
