"""Samples many continuations of one musical prompt at once with a small decoder."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, cache, layer):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k, v = cache.put(layer, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.ff(self.ln2(x))


class Cache:
    """Keys and values of all layers in one tensor: layer, key or value, batch, head, position, channel."""

    def __init__(self, layers, batch, heads, channels, limit, device):
        self.shape = (layers, 2, batch, heads, channels)
        self.limit = limit
        self.length = 0
        self.data = torch.empty(layers, 2, batch, heads, 0, channels, device=device)

    def begin(self, n):
        """Makes room for the n positions of the next pass."""
        layers, two, batch, heads, channels = self.shape
        room = torch.empty(layers, two, batch, heads, n, channels, device=self.data.device)
        self.data = torch.cat([self.data, room], dim=4)
        self.length += n

    def put(self, layer, k, v):
        n = k.size(2)
        self.data[layer, 0, :, :, self.length - n:self.length] = k
        self.data[layer, 1, :, :, self.length - n:self.length] = v
        return self.data[layer, 0, :, :, :self.length], self.data[layer, 1, :, :, :self.length]


class MusicLM(nn.Module):
    def __init__(self, vocab=2048, dim=512, layers=8, heads=8, limit=1024):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(limit, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.dim, self.heads, self.limit = dim, heads, limit

    def new_cache(self, batch, device):
        return Cache(len(self.layers), batch, self.heads, self.dim // self.heads, self.limit, device)

    def forward(self, ids, cache):
        start = cache.length
        cache.begin(ids.size(1))
        where = torch.arange(start, start + ids.size(1), device=ids.device)
        x = self.tok(ids) + self.pos(where)
        for i, layer in enumerate(self.layers):
            x = layer(x, cache, i)
        return self.head(self.norm(x[:, -1]))


def top_p(logits, p, temperature):
    probs = (logits / temperature).softmax(-1)
    ordered, index = probs.sort(descending=True)
    ordered[ordered.cumsum(-1) - ordered > p] = 0
    return index.gather(1, ordered.argmax(-1, keepdim=True))


@torch.inference_mode()
def sample(model, prompt, n_tokens, p=0.95, temperature=1.1):
    cache = model.new_cache(prompt.size(0), prompt.device)
    pieces, ids = [prompt.cpu()], prompt
    for i in range(n_tokens):
        ids = top_p(model(ids, cache), p, temperature)
        pieces.append(ids.cpu())
        if i % 100 == 0:
            print(i, 'tokens')
    return torch.cat(pieces, 1)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--samples', type=int, default=128)
    parser.add_argument('--tokens', type=int, default=420)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = MusicLM().to('cuda').eval()
    prompt = torch.randint(0, 2048, (1, 192)).repeat(args.samples, 1).to('cuda')
    music = sample(model, prompt, args.tokens)
    print(music.shape)
