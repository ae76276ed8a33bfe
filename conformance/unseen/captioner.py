import math
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH, LAYERS, HEADS, LENGTH = 32000, 1024, 6, 16, 64


class TokenAccuracy:
    """Top-k accuracy over everything that update() has seen."""

    def __init__(self, topk=(1, 5)):
        self.topk = topk
        self.scores, self.targets = [], []

    def update(self, scores, targets):
        self.scores.append(scores.detach())
        self.targets.append(targets.detach())

    def compute(self):
        hits = {k: 0 for k in self.topk}
        count = 0
        for scores, targets in zip(self.scores, self.targets):
            ranked = scores.topk(max(self.topk), dim=-1).indices
            match = ranked == targets[..., None]
            for k in self.topk:
                hits[k] += match[..., :k].sum().item()
            count += targets.numel()
        return {f"top{k}": hits[k] / count for k in self.topk}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(WIDTH) for _ in range(3))
        self.self_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, memory, mask):
        h = self.norm1(x)
        x = x + self.self_attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        x = x + self.cross_attn(self.norm2(x), memory, memory, need_weights=False)[0]
        return x + self.ff(self.norm3(x))


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = nn.Conv2d(3, WIDTH, 16, 16)
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.out = nn.Linear(WIDTH, VOCAB, bias=False)
        mask = torch.full((LENGTH, LENGTH), -math.inf).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, images, tokens):
        memory = self.vision(images).flatten(2).transpose(1, 2)
        x = self.tokens(tokens) + self.position
        for block in self.blocks:
            x = block(x, memory, self.mask)
        return self.out(x)


def batches(n, size=32):
    for _ in range(n):
        yield (torch.randn(size, 3, 224, 224, device="cuda"),
               torch.randint(0, VOCAB, (size, LENGTH), device="cuda"),
               torch.randint(0, VOCAB, (size, LENGTH), device="cuda"))


with torch.device("cuda"):
    model = Captioner()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
accuracy = TokenAccuracy()

for epoch in range(30):
    model.train()
    for images, tokens, targets in batches(2):
        loss = F.cross_entropy(model(images, tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    model.eval()
    with torch.inference_mode():
        for images, tokens, targets in batches(12, size=64):
            accuracy.update(model(images, tokens), targets)
    print(epoch, loss.item(), accuracy.compute(), flush=True)
