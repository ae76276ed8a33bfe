"""Streaming transcription LM: endless token stream with sliding window attention (window 1024)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass


@dataclass
class Cfg:
    d: int = 2048
    heads: int = 16
    layers: int = 6
    vocab: int = 8192
    window: int = 1024
    streams: int = 32          # concurrent audio streams
    chunk: int = 128           # tokens per call


class CachedAttention(nn.Module):
    def __init__(self, c: Cfg):
        super().__init__()
        self.c = c
        self.qkv = nn.Linear(c.d, 3 * c.d, bias=False)
        self.o = nn.Linear(c.d, c.d, bias=False)
        self.k = self.v = None

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.c.heads, -1).permute(2, 0, 3, 1, 4)
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat([self.k, k], dim=2)
            self.v = torch.cat([self.v, v], dim=2)
        w = self.c.window
        y = F.scaled_dot_product_attention(q, self.k[:, :, -w:], self.v[:, :, -w:])
        return self.o(y.transpose(1, 2).reshape(B, T, D))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.n1, self.n2 = CachedAttention(c), nn.LayerNorm(c.d), nn.LayerNorm(c.d)
        self.m = nn.Sequential(nn.Linear(c.d, 4 * c.d), nn.GELU(), nn.Linear(4 * c.d, c.d))

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.m(self.n2(x))


class StreamLM(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.emb = nn.Embedding(c.vocab, c.d)
        self.layers = nn.Sequential(*[Layer(c) for _ in range(c.layers)])
        self.head = nn.Linear(c.d, c.vocab, bias=False)

    @torch.inference_mode()
    def step(self, ids):
        return self.head(self.layers(self.emb(ids))[:, -1]).argmax(-1)


def serve(cfg, n_calls=150):
    torch.set_default_device("cuda")
    lm = StreamLM(cfg).to(torch.bfloat16).eval()
    emitted = 0
    for call in range(n_calls):
        audio_tokens = torch.randint(0, cfg.vocab, (cfg.streams, cfg.chunk))
        lm.step(audio_tokens)
        emitted += cfg.streams
        if call % 25 == 0:
            print(f"call {call} emitted {emitted}", flush=True)


serve(Cfg())
