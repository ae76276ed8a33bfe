"""Clause-risk regression on long contracts: a small Llama as an encoder, bf16 autocast, activation checkpointing."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaModel, get_cosine_schedule_with_warmup


class Contracts(Dataset):
    def __init__(self, n, length, seed):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(3, 8000, (n, length), generator=g)
        self.risk = torch.rand(n, generator=g)

    def __len__(self):
        return len(self.risk)

    def __getitem__(self, i):
        return self.tokens[i], self.risk[i]


class RiskModel(nn.Module):
    def __init__(self, length):
        super().__init__()
        config = LlamaConfig(vocab_size=8000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
                             num_attention_heads=12, max_position_embeddings=length, use_cache=False)
        self.body = LlamaModel(config)
        self.body.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(768, 1)

    def forward(self, tokens):
        hidden = self.body(input_ids=tokens).last_hidden_state
        return self.head(self.drop(hidden.mean(1))).squeeze(-1)


def evaluate(model, loader, device):
    model.eval()
    worst = 0.0
    with torch.inference_mode():
        for tokens, risk in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                guess = model(tokens.to(device))
            worst = max(worst, (guess.float().cpu() - risk).abs().max().item())
    return worst


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--length", type=int, default=2048)
    ap.add_argument("--batch", type=int, default=6)
    ap.add_argument("--accumulate", type=int, default=2)
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    device = "cuda"
    torch.manual_seed(0)
    train = DataLoader(Contracts(48, args.length, 1), args.batch, shuffle=True)
    valid = DataLoader(Contracts(12, args.length, 2), args.batch)
    model = RiskModel(args.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    schedule = get_cosine_schedule_with_warmup(optimizer, 2, args.epochs * len(train) // args.accumulate)

    model.train()
    for epoch in range(args.epochs):
        running = 0.0
        for step, (tokens, risk) in enumerate(train):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(tokens.to(device)).float(), risk.to(device))
            (loss / args.accumulate).backward()
            running += loss.item()
            if (step + 1) % args.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        print(f"epoch {epoch} loss {running / len(train):.4f} worst {evaluate(model, valid, device):.3f}")


if __name__ == "__main__":
    main()
