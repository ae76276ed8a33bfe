"""Zero-shot variant effect scores from a protein encoder.

Every request is (wild type, position, new residue); the score is the shift of the
residue representations, averaged over a window around the mutation.
"""
import functools
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

AMINO = "ACDEFGHIKLMNPQRSTVWY"
TOK = {a: i + 1 for i, a in enumerate(AMINO)}
DEV = torch.device("cuda")


class EncoderLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, l, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, l, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, l, d)
        x = x + self.proj(a)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class ProteinEncoder(nn.Module):
    def __init__(self, d=1280, depth=6, heads=20):
        super().__init__()
        self.embed = nn.Embedding(len(AMINO) + 1, d)
        self.pos = nn.Embedding(2048, d)
        self.layers = nn.ModuleList(EncoderLayer(d, heads) for _ in range(depth))

    def forward(self, ids, return_layers):
        x = self.embed(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        picked = []
        for i, layer in enumerate(self.layers, 1):
            x = layer(x)
            if i in return_layers:
                picked.append(x)
        return torch.stack(picked, 1)


with DEV:
    encoder = ProteinEncoder().eval()


@functools.lru_cache(maxsize=None)
def residue_reprs(sequence):
    ids = torch.tensor([[TOK[a] for a in sequence]], device=DEV)
    with torch.inference_mode():
        return encoder(ids, return_layers=(3, 4, 5, 6))


def score_variant(sequence, position, residue, window=24):
    mutated = sequence[:position] + residue + sequence[position + 1:]
    lo, hi = max(0, position - window), position + window
    shift = residue_reprs(mutated)[:, :, lo:hi] - residue_reprs(sequence)[:, :, lo:hi]
    return shift.norm(dim=-1).mean().item()


class VariantService:
    def __init__(self, name):
        self.name = name
        self.scores = {}
        self.started = time.time()

    def handle(self, request):
        sequence, position, residue = request
        self.scores[(position, residue)] = score_variant(sequence, position, residue)

    def report(self):
        n = len(self.scores)
        print(f"{self.name}: {n} variants, {n / (time.time() - self.started):.1f}/s")


def requests(n, rng):
    wild = "".join(rng.choice(AMINO) for _ in range(1024))
    for i in range(n):
        pos = rng.randrange(len(wild))
        yield wild, pos, AMINO[(AMINO.index(wild[pos]) + 1 + i % 18) % 20]


if __name__ == "__main__":
    service = VariantService("variant-effect")
    for i, request in enumerate(requests(240, random.Random(11))):
        service.handle(request)
        if i % 40 == 39:
            service.report()
