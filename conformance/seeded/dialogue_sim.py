"""Simulates dialogues with a small decoder to measure turn latency."""
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

HALF = torch.float16


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w


class CachedAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.hd = heads, d // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.register_buffer("k", None, persistent=False)
        self.register_buffer("v", None, persistent=False)

    def forget(self):
        self.k = self.v = None

    def split(self, y):
        b, t, _ = y.shape
        return y.view(b, t, self.heads, self.hd).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.wq(x)), self.split(self.wk(x)), self.split(self.wv(x))
        if self.k is not None:
            k, v = torch.cat([self.k, k], 2), torch.cat([self.v, v], 2)
        self.k, self.v = k, v
        causal = q.shape[2] == k.shape[2]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.wo(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.attn, self.n1, self.n2 = CachedAttention(d, heads), RMSNorm(d), RMSNorm(d)
        self.gate, self.up, self.down = nn.Linear(d, 3 * d, False), nn.Linear(d, 3 * d, False), nn.Linear(3 * d, d, False)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, vocab=32000, d=1024, depth=10, heads=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(depth))
        self.norm, self.head = RMSNorm(d), nn.Linear(d, vocab, bias=False)

    def forget(self):
        for layer in self.layers:
            layer.attn.forget()

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, -1]))


class Dialogue:
    def __init__(self, decoder, users):
        self.decoder, self.users = decoder, users
        self.turns = []

    def turn(self, prompt_tokens, answer_tokens):
        began = time.perf_counter()
        prompt = torch.randint(0, 32000, (self.users, prompt_tokens), device="cuda")
        token = self.decoder(prompt).argmax(-1, keepdim=True)
        for _ in range(answer_tokens - 1):
            token = self.decoder(token).argmax(-1, keepdim=True)
        self.turns.append(time.perf_counter() - began)


@torch.inference_mode()
def simulate(dialogues=14, users=24):
    with torch.device("cuda"):
        decoder = Decoder().to(HALF).eval()
    medians = []
    for number in range(dialogues):
        talk = Dialogue(decoder, users)
        for prompt, answer in ((160, 12), (64, 20)):
            talk.turn(prompt, answer)
        medians.append(sorted(talk.turns)[len(talk.turns) // 2])
        print(f"dialogue {number}: {medians[-1] * 1e3:.0f} ms a turn")
    return medians


if __name__ == "__main__":
    simulate()
