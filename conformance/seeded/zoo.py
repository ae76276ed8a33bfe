"""The models of seeded programs: a decoder with its variants of attention and cache, an image net, and small nets."""

import math

from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    def __init__(self, width, heads, fused=True):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, cache=None):
        query, key, value = (self.split(part) for part in self.project(x).chunk(3, -1))
        if cache is not None:
            key, value = cache.extend(key, value)
        if self.fused:
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
            mixed = scores.softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, fused=True):
        super().__init__()
        self.attention = Attention(width, heads, fused)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        x = x + self.attention(self.first(x), cache)
        return x + self.shrink(functional.gelu(self.grow(self.second(x))))


class Decoder(nn.Module):
    def __init__(self, width=512, depth=6, vocabulary=8192, fused=True, checkpointing=False):
        super().__init__()
        self.checkpointing = checkpointing
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, width // 64, fused) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def features(self, ids, caches=None):
        x = self.embed(ids)
        for i, block in enumerate(self.blocks):
            if self.checkpointing:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x, caches[i] if caches else None)
        return self.norm(x)

    def forward(self, ids, caches=None):
        return self.head(self.features(ids, caches))


class ImageNet(nn.Module):
    """Stages of 3 x 3 convolutions, each at half the size and twice the width of the one before."""

    def __init__(self, width=64, stages=4, each=2, classes=1000):
        super().__init__()
        layers, channels = [], 3
        for stage in range(stages):
            for i in range(each):
                out = width << stage
                layers += [nn.Conv2d(channels, out, 3, 2 if i == 0 and stage else 1, 1), nn.BatchNorm2d(out), nn.ReLU()]
                channels = out
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(channels, classes)

    def forward(self, pictures):
        return self.head(self.body(pictures).mean((2, 3)))


def mlp(width, depth, inputs=None, outputs=None):
    layers = [nn.Linear(inputs or width, width), nn.ReLU()]
    for _ in range(depth - 2):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, outputs or width))


class Lora(nn.Module):
    """A frozen or unfrozen linear layer with a low-rank path beside it."""

    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def with_lora(model, rank):
    for block in model.blocks:
        block.attention.project = Lora(block.attention.project, rank)
        block.attention.out = Lora(block.attention.out, rank)
    return model


def adapters(model):
    return [p for name, p in model.named_parameters() if ".down." in name or ".up." in name]
