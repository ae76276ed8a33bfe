"""A GPT in bf16 over scaled_dot_product_attention, which has a fused kernel on some cards and none on others."""

import sys

import torch
from tell import tell
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LENGTH, TOKENS = 1024, 16, 1024, 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = [part.view(len(x), LENGTH, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))

    def forward(self, tokens):
        return functional.cross_entropy(self.head(self.blocks(self.embedding(tokens))).flatten(0, 1), tokens.flatten())


batch = int(sys.argv[1])
model = Gpt(layers=12).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randint(0, TOKENS, (batch, LENGTH), device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
tell("gpt_bf16", batch=batch)
