"""Writes letters with a decoder of our own; the keys and values have their room from the start and are used again."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
torch.manual_seed(3)
DIM, HEADS, DEPTH, VOCAB, BATCH, ROOM = 1024, 16, 12, 24000, 24, 512


class KeyValues:
    def __init__(self):
        shape = (DEPTH, 2, BATCH, HEADS, ROOM, DIM // HEADS)
        self.data = torch.empty(shape, device=device, dtype=torch.bfloat16)
        self.used = 0

    def put(self, depth, k, v):
        end = self.used + k.size(2)
        self.data[depth, 0, :, :, self.used:end] = k
        self.data[depth, 1, :, :, self.used:end] = v
        return self.data[depth, 0, :, :, :end], self.data[depth, 1, :, :, :end]

    def rewind(self):
        self.used = 0


class Block(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, cache):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        k, v = cache.put(self.depth, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, DIM))
        return x + self.mlp(self.n2(x))


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block(k) for k in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, cache):
        h = self.embed(ids)
        for block in self.blocks:
            h = block(h, cache)
        cache.used += ids.size(1)
        return self.head(self.norm(h[:, -1]))


def tokens(writer, cache, prompt, count, temperature=0.8):
    """Yields the next token of each letter."""
    logits = writer(prompt.to(device), cache)
    for _ in range(count):
        choice = torch.multinomial((logits.float() / temperature).softmax(-1).clamp(min=1e-6), 1)
        yield choice.squeeze(1).cpu()
        logits = writer(choice, cache)


writer = Writer().to(device, torch.bfloat16).eval().requires_grad_(False)
cache = KeyValues()
letters = []
with torch.inference_mode():
    for batch in range(4):
        cache.rewind()
        prompt = torch.randint(0, VOCAB, (BATCH, 100 + 20 * batch))
        text = torch.stack(list(tokens(writer, cache, prompt, 40)), 1)
        letters.append(text)
        print("batch", batch, tuple(text.shape), f"{torch.cuda.memory_allocated() >> 20} MiB")
print(len(torch.cat(letters)), "letters")
