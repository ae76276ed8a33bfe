"""Summaries of support tickets, offline, with a decoder of 7 B class."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Shape:
    words: int = 32000
    width: int = 4096
    inner: int = 11008
    heads: int = 32
    layers: int = 32
    dtype: torch.dtype = torch.float16


class DecoderLayer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        w = shape.width
        self.heads = shape.heads
        self.norm_a, self.norm_b = nn.RMSNorm(w), nn.RMSNorm(w)
        self.q, self.k, self.v, self.o = (nn.Linear(w, w, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(w, shape.inner, bias=False), nn.Linear(w, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, w, bias=False)

    def forward(self, x):
        h = self.norm_a(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.norm_b(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed = nn.Embedding(shape.words, shape.width)
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.words, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1]))


def load(shape):
    before = torch.get_default_dtype()
    torch.set_default_dtype(shape.dtype)
    try:
        with torch.device("cuda"):
            return Decoder(shape).eval().requires_grad_(False)
    finally:
        torch.set_default_dtype(before)


def summarize(model, ticket, words=8):
    ids = ticket
    for _ in range(words):
        following = model(ids).argmax(-1, keepdim=True)
        ids = torch.cat([ids, following], 1)
    return ids[:, ticket.shape[1]:].tolist()


if __name__ == "__main__":
    with torch.inference_mode():
        decoder = load(Shape())
        for ticket in range(3):
            print(summarize(decoder, torch.randint(0, 32000, (1, 400 + 90 * ticket), device="cuda")))
