"""Labels untranscribed Mandarin speech with a trained model: best characters, and codes of all frames for clustering."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F

device = 'cuda'
CHARACTERS = 21128


class Acoustic(nn.Module):
    def __init__(self, dim=512, depth=4):
        super().__init__()
        self.inp = nn.Linear(80, dim)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2048), nn.GELU(), nn.Linear(2048, dim)) for _ in range(depth))
        self.characters = nn.Linear(dim, CHARACTERS, bias=False)
        self.codes = nn.Linear(dim, 256, bias=False)

    def forward(self, mel):
        x = self.inp(mel)
        for block in self.blocks:
            x = x + block(x)
        return x


class Corpus:
    """Utterances in batches of like length, so that little is padded."""

    def __init__(self, batches, size, seed=12):
        self.gen = torch.Generator().manual_seed(seed)
        self.size = size
        self.frames = torch.randint(400, 1810, (batches * size,), generator=self.gen)

    def order(self):
        return self.frames.argsort()

    def __iter__(self):
        for part in self.order().split(self.size):
            longest = int(self.frames[part].max())
            yield part, torch.randn(len(part), longest, 80, generator=self.gen)


class Codebook:
    """Clusters the codes of a corpus with a few rounds of k-means."""

    def __init__(self, k=64):
        self.k = k

    def fit(self, codes, rounds=3):
        centres = codes[:self.k].clone()
        for _ in range(rounds):
            near = (codes @ centres.t()).argmax(1)
            sums = torch.zeros_like(centres).index_add_(0, near, codes)
            centres = F.normalize(sums, dim=1)
        return centres


@torch.inference_mode()
def label(model, corpus):
    best, codes = {}, []
    for part, mel in corpus:
        states = model(mel.half().to(device))
        logits = model.characters(states)
        path = logits.argmax(-1)
        codes.append(model.codes(states))
        del logits, states
        best.update(zip(part.tolist(), path.cpu()))
        print(f'{len(best)} utterances, {mel.size(1)} frames, {torch.cuda.memory_reserved() >> 20} MiB')
    return best, codes


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batches', type=int, default=16)
    ap.add_argument('--batch', type=int, default=24)
    args = ap.parse_args()
    torch.manual_seed(0)
    model = Acoustic().to(device).half().eval()
    best, codes = label(model, Corpus(args.batches, args.batch))
    sample = torch.cat([c.flatten(0, 1)[::8] for c in codes])
    print(len(best), Codebook().fit(sample).shape)


if __name__ == '__main__':
    main()
