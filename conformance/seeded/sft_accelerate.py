"""Instruction tuning by accelerate; the last outputs are kept to be looked at in the notebook."""
from collections import deque
import torch
from accelerate import Accelerator
from transformers import GPT2Config, GPT2LMHeadModel
from note import Growth
from loop import main


class Inspector:
    def __init__(self, n=200):
        self.seen = deque(maxlen=n)

    def look(self, step, out):
        self.seen.append((step, out))


def tune(steps=14, batch=4, length=512):
    acc = Accelerator()
    cfg = GPT2Config(n_embd=768, n_layer=8, n_head=12, vocab_size=12000, n_positions=1024)
    lm = GPT2LMHeadModel(cfg)
    opt = torch.optim.AdamW(lm.parameters(), 2e-5)
    lm, opt = acc.prepare(lm, opt)
    inspector, grown = Inspector(), Growth()
    for step in range(steps):
        ids = torch.randint(0, 12000, (batch, length), device=acc.device)
        out = lm(input_ids=ids, labels=ids)
        acc.backward(out.loss, retain_graph=True)
        acc.clip_grad_norm_(lm.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        inspector.look(step, out)
        del out, ids
        grown.note()


if __name__ == "__main__":
    main(globals())
