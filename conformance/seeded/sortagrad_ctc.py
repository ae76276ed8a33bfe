"""CTC training, the first epoch in order of length as in Deep Speech 2."""
import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Sampler, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--utterances", type=int, default=360)
parser.add_argument("--batch", type=int, default=12)
parser.add_argument("--epochs", type=int, default=1)
args = parser.parse_args()
device = "cuda"
random.seed(0)
torch.manual_seed(0)


class Utterances(Dataset):
    def __init__(self, n):
        self.seconds = [2 + 18 * random.random() for _ in range(n)]

    def __len__(self):
        return len(self.seconds)

    def __getitem__(self, i):
        frames = int(self.seconds[i] * 100)
        return torch.zeros(frames, 80), torch.randint(1, 60, (frames // 12,))


class ByLength(Sampler):
    """Batches of neighbours in length."""

    def __init__(self, data, batch):
        order = sorted(range(len(data)), key=lambda i: data.seconds[i])
        self.batches = [order[k:k + batch] for k in range(0, len(order), batch)]

    def __iter__(self):
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def collate(items):
    t, u = max(len(x) for x, _ in items), max(len(y) for _, y in items)
    x, y = torch.zeros(len(items), t, 80), torch.zeros(len(items), u, dtype=torch.long)
    for k, (a, b) in enumerate(items):
        x[k, :len(a)], y[k, :len(b)] = a, b
    return x, y, torch.tensor([len(b) for _, b in items])


class Recognizer(nn.Module):
    def __init__(self, dim=768, depth=8):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 32, (11, 41), (2, 2), (5, 20)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20),
                                   nn.Conv2d(32, 32, (11, 21), (1, 2), (5, 10)), nn.BatchNorm2d(32), nn.Hardtanh(0, 20))
        self.proj = nn.Linear(640, dim)
        self.layers = nn.ModuleList([nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GLU(-1),
                                                   nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))
                                     for _ in range(depth)])
        self.out = nn.Linear(dim, 60)

    def forward(self, x):
        h = self.front(x.unsqueeze(1))
        h = self.proj(h.transpose(1, 2).flatten(2))
        for layer in self.layers:
            h = h + layer(h)
        return self.out(h).log_softmax(-1)


data = Utterances(args.utterances)
loader = DataLoader(data, batch_sampler=ByLength(data, args.batch), collate_fn=collate)
net = Recognizer().to(device)
opt = torch.optim.AdamW(net.parameters(), 3e-4)
for epoch in range(args.epochs):
    for step, (x, y, lengths) in enumerate(loader):
        logp = net(x.to(device)).transpose(0, 1)
        frames = torch.full((len(y),), len(logp))
        loss = F.ctc_loss(logp.cpu().float(), y, frames, lengths, zero_infinity=True) if step < 0 else -logp[..., 0].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(epoch, step, tuple(x.shape), f"{loss.item():.3f}")
