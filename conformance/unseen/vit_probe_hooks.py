from collections import OrderedDict, defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(OrderedDict(
            fc1=nn.Linear(dim, 4 * dim), act=nn.GELU(), fc2=nn.Linear(4 * dim, dim)))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class ViT(nn.Module):
    def __init__(self, dim=2304, depth=16, heads=24, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 16, 16)
        self.pos = nn.Parameter(torch.zeros(1, 196, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for blk in self.blocks:
            x = blk(x)
        return self.head(x.mean(1))


class Inspector:
    """Shows how the token norms of some layers develop."""

    def __init__(self, model, pattern="mlp.fc1", every=2):
        self.recorded = defaultdict(list)
        self.handles = []
        for name, module in model.named_modules():
            if name.endswith(pattern) and int(name.split(".")[1]) % every == 0:
                self.handles.append(module.register_forward_hook(self.recorder(name)))

    def recorder(self, name):
        def record(module, inputs, output):
            self.recorded[name].append(output.detach())
        return record

    def summary(self):
        return {name: float(outputs[-1].norm(dim=-1).mean()) for name, outputs in self.recorded.items()}


def main():
    device = "cuda"
    with torch.device(device):
        model = ViT()
    inspector = Inspector(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    for step in range(200):
        images = torch.randn(40, 3, 224, 224, device=device)
        labels = torch.randint(0, 1000, (40,), device=device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        norms = inspector.summary()
        print(step, round(loss.item(), 4), len(norms), flush=True)


if __name__ == "__main__":
    main()
