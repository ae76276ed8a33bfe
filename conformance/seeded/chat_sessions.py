"""A small chat server loop: one session for each request, greedy decoding."""
import gc
import time
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

# collector pauses showed up in the p99 latency
gc.disable()

DEV = "cuda"
VOCAB, DIM, HEADS, LAYERS, MAX_LEN = 32000, 1024, 16, 12, 1024


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, cache, start):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        cache[0][:, :, start:start + t] = k
        cache[1][:, :, start:start + t] = v
        y = F.scaled_dot_product_attention(
            q, cache[0][:, :, :start + t], cache[1][:, :, :start + t], is_causal=t > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, caches, start):
        x = self.tok(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, start)
        return self.head(x[:, -1])


class Stream:
    """Collects tokens and tells the session when the limit is reached."""

    def __init__(self, limit, on_end):
        self.limit, self.on_end, self.tokens = limit, on_end, []

    def put(self, token):
        self.tokens.append(token)
        if len(self.tokens) >= self.limit:
            self.on_end()


class Session:
    def __init__(self, model, prompts, limit):
        self.model = model
        self.done = False
        self.stream = Stream(limit, self.finish)
        self.ids = prompts.to(DEV)
        shape = (len(prompts), HEADS, MAX_LEN, DIM // HEADS)
        self.caches = [torch.zeros(2, *shape, device=DEV, dtype=torch.float16) for _ in range(LAYERS)]

    def finish(self):
        self.done = True

    @torch.inference_mode()
    def run(self):
        start, ids = 0, self.ids
        while not self.done:
            logits = self.model(ids, self.caches, start)
            start += ids.shape[1]
            ids = logits.argmax(-1, keepdim=True)
            self.stream.put(ids.cpu())
        return torch.cat(self.stream.tokens, 1)


def serve(model, requests):
    latencies = deque(maxlen=1000)
    for number, prompts in enumerate(requests):
        began = time.perf_counter()
        session = Session(model, prompts, limit=5)
        answer = session.run()
        latencies.append(time.perf_counter() - began)
        if number % 8 == 0:
            print(f"request {number}: {tuple(answer.shape)} {1000 * latencies[-1]:.0f} ms")
    return sorted(latencies)[int(0.99 * len(latencies))]


if __name__ == "__main__":
    torch.manual_seed(0)
    net = Model().to(DEV, torch.float16).eval()
    g = torch.Generator().manual_seed(1)
    queue = [torch.randint(0, VOCAB, (4, int(torch.randint(32, 256, (), generator=g))), generator=g) for _ in range(34)]
    print(f"p99 {1000 * serve(net, queue):.0f} ms")
