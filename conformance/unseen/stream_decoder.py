import torch
import torch.nn as nn
import torch.nn.functional as F


class StreamingAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.k_past = self.v_past = None

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if self.k_past is not None:
            k = torch.cat([self.k_past, k], 2)
            v = torch.cat([self.v_past, v], 2)
        self.k_past, self.v_past = k, v
        k, v = k[:, :, -self.window:], v[:, :, -self.window:]
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.attn = StreamingAttention(dim, heads, window)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transcriber(nn.Module):
    """Audio frames in, characters out, without an end."""

    def __init__(self, mels=80, dim=2048, depth=24, heads=16, window=512, characters=64):
        super().__init__()
        self.inp = nn.Linear(mels, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, window) for _ in range(depth))
        self.head = nn.Linear(dim, characters)

    def forward(self, frames):
        x = self.inp(frames)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def microphone(channels, chunk, count):
    for _ in range(count):
        yield torch.randn(channels, chunk, 80, device="cuda", dtype=torch.float16)


torch.set_grad_enabled(False)
with torch.device("cuda"):
    model = Transcriber().half().eval()
texts = [[] for _ in range(16)]

for number, frames in enumerate(microphone(16, 256, 2000)):
    ids = model(frames).argmax(-1).cpu()
    for text, row in zip(texts, ids):
        text.append(bytes(32 + i for i in row.tolist()))
        del text[:-50]
    if number % 2 == 0:
        print(f"{number * 256} frames, last: {len(texts[0][-1])} characters", flush=True)
