"""Frame-by-frame generation of token videos: each frame has 64 tokens and attends to all earlier frames."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Memory:
    """Keys and values of all layers: (layers, batch, heads, tokens, size)."""

    def __init__(self, layers, batch, heads, size, room, device, dtype):
        self.used = 0
        self.k = torch.empty(layers, batch, heads, 0, size, device=device, dtype=dtype)
        self.v = torch.empty(layers, batch, heads, 0, size, device=device, dtype=dtype)

    def of(self, layer):
        return self.k[layer, :, :, :self.used], self.v[layer, :, :, :self.used]

    def extend(self, keys, values):
        self.k = torch.cat([self.k, torch.stack(keys)], dim=3)
        self.v = torch.cat([self.v, torch.stack(values)], dim=3)
        self.used += keys[0].shape[2]


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past):
        b, t, w = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, torch.cat([past[0], k], 2), torch.cat([past[1], v], 2))
        x = x + self.o(y.transpose(1, 2).reshape(b, t, w))
        return x + self.ff(self.ln2(x)), k, v


class VideoModel(nn.Module):
    def __init__(self, codes=8192, width=1024, depth=12, heads=16):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.embed, self.place = nn.Embedding(codes, width), nn.Parameter(torch.zeros(64, width))
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, codes, bias=False)

    def forward(self, codes, memory):
        x = self.embed(codes) + self.place
        keys, values = [], []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, memory.of(i))
            keys.append(k)
            values.append(v)
        memory.extend(keys, values)
        return self.head(x)


@torch.inference_mode()
def generate(model, batch, frames, device):
    memory = Memory(len(model.layers), batch, model.heads, model.size, frames * 64, device, torch.float16)
    codes = torch.zeros(batch, 64, dtype=torch.long, device=device)
    clip = []
    for frame in range(frames):
        started = time.perf_counter()
        logits = model(codes, memory)
        codes = logits.argmax(-1)
        clip.append(codes.cpu())
        if frame % 10 == 0:
            print(f'frame {frame}: {1e3 * (time.perf_counter() - started):.0f} ms, {memory.used} tokens', flush=True)
    return torch.stack(clip, 1)


if __name__ == '__main__':
    torch.manual_seed(0)
    net = VideoModel().half().to('cuda').eval()
    for round in range(2):
        video = generate(net, batch=16, frames=48, device='cuda')
        print('clip', round, tuple(video.shape))
