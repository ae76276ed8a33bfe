"""Attention that is written out: its scores are the peak."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(n_layer=6, n_head=8, n_embd=512, vocab_size=4096, n_positions=1024, attn_implementation="eager")
model = GPT2LMHeadModel(config).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    ids = torch.randint(0, 4096, (4, 1024)).cuda()
    loss = model(ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
