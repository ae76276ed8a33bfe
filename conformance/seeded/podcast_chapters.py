"""Splits podcasts into chapters: windows of an encoder, one after the other; a coarse track of each episode is kept for linking."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
random.seed(40)
torch.manual_seed(40)


class FrameEncoder(nn.Module):
    def __init__(self, mels=128, dim=512, depth=4):
        super().__init__()
        self.front = nn.Conv1d(mels, dim, 5, 2, 2)
        self.body = nn.ModuleList([nn.Conv1d(dim, dim, 9, padding=4, groups=8) for _ in range(depth)])
        self.out = nn.Conv1d(dim, dim, 1)

    def forward(self, x):
        h = F.gelu(self.front(x))
        for layer in self.body:
            h = h + F.gelu(layer(h))
        return self.out(h)


class Chapterer:
    """Cuts where the track of one minute differs from the next; links chapters of episodes on one subject."""

    def __init__(self, encoder):
        self.encoder = encoder
        self.tracks = {}

    def mel(self, minutes):
        return torch.zeros(1, 128, minutes * 6000, device=device)

    @torch.no_grad()
    def add(self, name, minutes):
        frames = self.encoder(self.mel(minutes))
        track = F.adaptive_avg_pool1d(frames, 1024)[0]
        energy = frames.square().mean(1)
        self.tracks[name] = track
        return energy.amax().item()

    def cuts(self, name, count=5):
        t = self.tracks[name]
        step = 1 - F.cosine_similarity(t[:, 1:], t[:, :-1], dim=0)
        return step.topk(count).indices.sort().values.cpu()

    def linked(self, a, b):
        return (F.normalize(self.tracks[a], dim=0) * F.normalize(self.tracks[b], dim=0)).sum().item()


def episodes(count):
    for k in range(count):
        yield f"episode {k:03d}", 20 + 11 * (k * 7 % 13) + random.randrange(9)


encoder = FrameEncoder().to(device).eval()
chapters = Chapterer(encoder)
last = None
for name, minutes in episodes(48):
    loud = chapters.add(name, minutes)
    found = chapters.cuts(name)
    if last:
        chapters.linked(last, name)
    last = name
    if name.endswith("0"):
        print(name, f"{minutes} min, peak {loud:.2f}, cuts", found.tolist())
