"""Adapt a decoder with hand-written low-rank layers."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, base: nn.Linear, r=8, alpha=16, dropout=0.05):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.empty(r, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale = alpha / r
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(self.drop(x), self.a), self.b)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q_proj, self.k_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.v_proj, self.o_proj = nn.Linear(d, d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        h = self.n1(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, vocab=16000, d=1536, layers=20, heads=12, ctx=512):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def inject(model, targets=("q_proj", "v_proj"), r=8):
    adapters = []
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in targets and isinstance(child, nn.Linear):
                layer = LowRank(child, r)
                setattr(module, name, layer)
                adapters += [layer.a, layer.b]
    return adapters


def batches(n, size, length, vocab, seed=0):
    g = torch.Generator().manual_seed(seed)
    for _ in range(n):
        ids = torch.randint(0, vocab, (size, length + 1), generator=g)
        yield ids[:, :-1], ids[:, 1:]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rank", type=int, default=8)
    ap.add_argument("--steps", type=int, default=12)
    ap.add_argument("--accum", type=int, default=2)
    ap.add_argument("--batch", type=int, default=2)
    args = ap.parse_args()

    torch.manual_seed(0)
    model = Decoder()
    adapters = inject(model, r=args.rank)
    model.to("cuda").train()
    optimizer = torch.optim.AdamW(adapters, lr=2e-4)
    count = sum(p.numel() for p in adapters)
    print(f"training {count / 1e6:.2f}M of {sum(p.numel() for p in model.parameters()) / 1e6:.0f}M")

    for step, (ids, labels) in enumerate(batches(args.steps, args.batch, 256, 16000)):
        logits = model(ids.cuda())
        loss = F.cross_entropy(logits.flatten(0, 1), labels.cuda().flatten())
        (loss / args.accum).backward()
        if (step + 1) % args.accum == 0:
            torch.nn.utils.clip_grad_norm_(adapters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            print(f"step {step + 1}: {loss.item():.4f}")
    torch.save([a.detach().cpu() for a in adapters], "lora.pt")


if __name__ == "__main__":
    main()
