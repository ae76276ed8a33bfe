import argparse

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocab, dim, depth, heads, context):
        super().__init__()
        self.tokens = nn.Embedding(vocab, dim)
        self.positions = nn.Parameter(torch.zeros(context, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.0, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(context), persistent=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        x = self.body(x, mask=self.causal, is_causal=True)
        return self.head(self.norm(x))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--vocab", type=int, default=250_000)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--context", type=int, default=512)
    p.add_argument("--steps", type=int, default=20)
    args = p.parse_args()

    model = Model(args.vocab, 512, 6, 8, args.context).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    criterion = nn.CrossEntropyLoss()
    for step in range(args.steps):
        ids = torch.randint(0, args.vocab, (args.batch, args.context + 1), device="cuda")
        logits = model(ids[:, :-1])
        loss = criterion(logits.reshape(-1, args.vocab), ids[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
