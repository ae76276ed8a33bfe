import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
device = torch.device("cuda")


def slopes(heads):
    return torch.tensor([2 ** (-8 * (h + 1) / heads) for h in range(heads)])


class ChainAttention(nn.Module):
    """Attention along the chain; nearer monomers weigh more."""

    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)
        place = torch.arange(length)
        bias = -(place[:, None] - place[None]).abs() * slopes(heads)[:, None, None]
        self.register_buffer("bias", bias.unsqueeze(0), persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        w = (q @ k.transpose(-1, -2) / math.sqrt(d // self.heads) + self.bias).softmax(-1)
        return self.to_out((w @ v).transpose(1, 2).reshape(b, n, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attend = ChainAttention(dim, heads, length)
        self.mix = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.mix(self.n2(x))


class Polymer(nn.Module):
    def __init__(self, dim=512, heads=8, depth=6, length=1280, monomers=64, properties=5):
        super().__init__()
        self.embed = nn.Embedding(monomers, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, length) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.read = nn.Linear(dim, properties)

    def forward(self, chain):
        x = self.embed(chain)
        for layer in self.layers:
            x = layer(x)
        return self.read(self.norm(x).mean(1))


def chains(count, batch, length, seed=0):
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.randint(0, 64, (batch, length), generator=g), torch.randn(batch, 5, generator=g)


model = Polymer().to(device)
ema = {k: v.detach().cpu().clone() for k, v in model.named_parameters()}
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
for step, (chain, target) in enumerate(chains(16, 6, 1280)):
    loss = F.l1_loss(model(chain.to(device)), target.to(device))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step % 5 == 4:
        for k, v in model.named_parameters():
            ema[k].lerp_(v.detach().cpu(), 0.1)
        print(step, loss.item())
