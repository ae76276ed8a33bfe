"""Long clinical notes: multi-label codes from whole documents."""
import math

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Notes(Dataset):
    def __init__(self, n, length, labels):
        self.n, self.length, self.labels = n, length, labels

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((self.length,), i % 5000, dtype=torch.long), torch.zeros(self.labels)


class SelfAttention(nn.Module):
    def __init__(self, d, heads, dropout=0.1):
        super().__init__()
        self.heads, self.hd = heads, d // heads
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(d, d)

    def transpose_for_scores(self, x):
        return x.view(*x.shape[:2], self.heads, self.hd).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.transpose_for_scores(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.hd)
        probs = self.dropout(torch.softmax(scores, dim=-1))
        context = torch.matmul(probs, v)
        return self.dense(context.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.att, self.n1, self.n2 = SelfAttention(d, heads), nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))

    def forward(self, x):
        x = self.n1(x + self.att(x))
        return self.n2(x + self.ff(x))


class NoteCoder(nn.Module):
    def __init__(self, vocab=8000, d=384, heads=6, depth=4, labels=50, length=3072):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(length, d)
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(depth))
        self.label_queries = nn.Parameter(torch.randn(labels, d) * 0.02)
        self.out = nn.Linear(d, 1)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        attend = torch.softmax(x @ self.label_queries.t(), dim=1)
        return self.out(attend.transpose(1, 2) @ x).squeeze(-1)


def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = NoteCoder()
    opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    data = DataLoader(Notes(24, 3072, 50), batch_size=2, shuffle=True)
    model, opt, data = accelerator.prepare(model, opt, data)
    bce = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        total = 0.0
        for ids, labels in data:
            with accelerator.accumulate(model):
                loss = bce(model(ids), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad()
            total += loss.item()
        accelerator.print(f"epoch {epoch}: {total / len(data):.4f}")


if __name__ == "__main__":
    main()
