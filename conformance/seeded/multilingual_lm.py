"""Continue training of a small multilingual model: few layers, a large shared vocabulary."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

VOCAB = 119_547
device = 'cuda'


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        return x + self.ff(self.ln2(x))


class MultilingualLM(nn.Module):
    def __init__(self, width=512, depth=6, heads=8):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def hidden(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def piece_loss(self, h, labels):
        logits = h @ self.embed.weight.T
        return F.cross_entropy(logits.float(), labels, reduction='sum')

    def forward(self, ids, labels):
        h = self.hidden(ids).flatten(0, 1)
        labels = labels.flatten()
        return self.piece_loss(h, labels) / len(labels)


def stream(batch, length, steps, seed):
    g = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(0, VOCAB, (batch, length + 1), generator=g)
        yield rows[:, :-1], rows[:, 1:]


def main():
    torch.manual_seed(0)
    model = MultilingualLM().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    for step, (ids, labels) in enumerate(stream(batch=8, length=512, steps=8, seed=1)):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(ids.to(device), labels.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f'step {step} {loss.item():.3f}', flush=True)


main()
