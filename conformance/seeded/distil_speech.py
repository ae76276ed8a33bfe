"""Distils a wide speech encoder into a narrow one; the teacher's adapter is trained along with the student."""
import argparse
import itertools

import torch
import torch.nn.functional as F
from torch import nn

device = 'cuda'


class Conformerish(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2, self.n3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))
        self.att = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.conv = nn.Conv1d(dim, dim, 15, padding=7, groups=dim)

    def forward(self, x):
        y = self.n1(x)
        x = x + self.att(y, y, y, need_weights=False)[0]
        x = x + self.conv(self.n2(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ff(self.n3(x))


class Encoder(nn.Module):
    def __init__(self, dim, heads, depth):
        super().__init__()
        self.inp = nn.Conv1d(80, dim, 4, stride=4)
        self.layers = nn.ModuleList(Conformerish(dim, heads) for _ in range(depth))

    def forward(self, mel):
        x = self.inp(mel).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x


class Teacher(nn.Module):
    """A trained encoder and a fresh adapter, which maps its states to where the student can follow."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder(1280, 16, 14)
        self.adapter = nn.Sequential(nn.LayerNorm(1280), nn.Linear(1280, 384))

    def forward(self, mel):
        return self.adapter(self.encoder(mel))


def contrast(a, b, temperature=0.1):
    a, b = F.normalize(a.mean(1), dim=-1), F.normalize(b.mean(1), dim=-1)
    logits = a @ b.t() / temperature
    return F.cross_entropy(logits, torch.arange(len(a), device=a.device))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=4)
    ap.add_argument('--steps', type=int, default=16)
    args = ap.parse_args()
    torch.manual_seed(0)
    teacher = Teacher().to(device)
    teacher.encoder.eval()
    student = Encoder(384, 6, 8).to(device)
    params = list(itertools.chain(student.parameters(), teacher.adapter.parameters()))
    opt = torch.optim.AdamW(params, 5e-4)
    gen = torch.Generator().manual_seed(6)
    for step in range(args.steps):
        mel = torch.randn(args.batch, 80, 400, generator=gen).to(device)
        wanted, got = teacher(mel), student(mel)
        loss = F.l1_loss(got, wanted) + 0.1 * contrast(got, wanted)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 5.0)
        opt.step()
        if step % 5 == 0:
            print(f'step {step} loss {loss.item():.4f}')


if __name__ == '__main__':
    main()
