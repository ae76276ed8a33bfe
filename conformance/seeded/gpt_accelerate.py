import argparse
import math

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup


class Chunks(Dataset):
    """A long stream of tokens, cut into blocks."""

    def __init__(self, blocks, length, vocab, seed):
        g = torch.Generator().manual_seed(seed)
        self.stream = torch.randint(0, vocab, (blocks * length,), generator=g)
        self.length = length

    def __len__(self):
        return len(self.stream) // self.length

    def __getitem__(self, i):
        ids = self.stream[i * self.length:(i + 1) * self.length]
        return {"input_ids": ids, "labels": ids}


@torch.no_grad()
def validate(model, loader, accelerator):
    model.eval()
    total, count = 0.0, 0
    for batch in loader:
        loss = model(**batch).loss
        total += accelerator.gather(loss.detach().reshape(1)).mean().item()
        count += 1
    model.train()
    return total / count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--layers", type=int, default=8)
    ap.add_argument("--width", type=int, default=512)
    ap.add_argument("--vocab", type=int, default=16384)
    ap.add_argument("--length", type=int, default=512)
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--accum", type=int, default=4)
    ap.add_argument("--updates", type=int, default=8)
    args = ap.parse_args()

    torch.manual_seed(1)
    accelerator = Accelerator(gradient_accumulation_steps=args.accum)
    config = GPT2Config(vocab_size=args.vocab, n_positions=args.length, n_embd=args.width, n_layer=args.layers,
                        n_head=8, attn_implementation="sdpa", use_cache=False)
    model = GPT2LMHeadModel(config)
    decay = [p for p in model.parameters() if p.ndim >= 2]
    rest = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=3e-4, fused=True)
    schedule = get_cosine_schedule_with_warmup(optimizer, 2, args.updates)
    train = DataLoader(Chunks(256, args.length, args.vocab, 0), batch_size=args.batch, shuffle=True)
    valid = DataLoader(Chunks(32, args.length, args.vocab, 1), batch_size=args.batch)
    model, optimizer, train, valid, schedule = accelerator.prepare(model, optimizer, train, valid, schedule)

    model.train()
    done, running = 0, 0.0
    for batch in train:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        running += loss.item() / args.accum
        if accelerator.sync_gradients:
            done += 1
            if done % 4 == 0:
                value = validate(model, valid, accelerator)
                accelerator.print(f"update {done} train {running:.4f} valid {value:.4f} ppl {math.exp(value):.1f}")
            running = 0.0
        if done == args.updates:
            break


if __name__ == "__main__":
    main()
