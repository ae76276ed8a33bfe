import argparse
import math

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import LlamaConfig, LlamaModel


class PackedTokens(Dataset):
    def __init__(self, n, length, vocab):
        self.n, self.length, self.vocab = n, length, vocab

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randint(0, self.vocab, (self.length + 1,), generator=g)


class TinyLlama(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.body = LlamaModel(config)
        self.body.gradient_checkpointing_enable()
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.lm_head.weight = self.body.embed_tokens.weight

    def token_loss(self, hidden, labels):
        logits = self.lm_head(hidden).float()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction='sum')

    def forward(self, tokens):
        inputs, labels = tokens[:, :-1], tokens[:, 1:]
        hidden = self.body(inputs, use_cache=False).last_hidden_state
        return self.token_loss(hidden, labels) / labels.numel()


def cosine(step, warmup, total):
    if step < warmup:
        return step / max(1, warmup)
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--seq-len', type=int, default=1024)
    p.add_argument('--micro-batch', type=int, default=3)
    p.add_argument('--accumulate', type=int, default=2)
    p.add_argument('--steps', type=int, default=16)
    args = p.parse_args()

    accelerator = Accelerator(mixed_precision='bf16', gradient_accumulation_steps=args.accumulate)
    config = LlamaConfig(vocab_size=128256, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                         num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=args.seq_len)
    model = TinyLlama(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=True)
    loader = DataLoader(PackedTokens(args.steps * args.micro_batch, args.seq_len, config.vocab_size),
                        batch_size=args.micro_batch, shuffle=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: cosine(s, 2, args.steps))
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

    seen, total = 0, 0.0
    for step, tokens in enumerate(loader):
        with accelerator.accumulate(model):
            loss = model(tokens)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seen += tokens.numel()
        total += loss.item()
        if step % 4 == 3:
            accelerator.print(f'{seen} tokens, loss {total / 4:.4f}')
            total = 0.0


if __name__ == '__main__':
    main()
