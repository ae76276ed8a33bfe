"""Text by a GPT-2 whose loop keeps the graphs of all its steps: it never calls no_grad."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_head=8, n_embd=512, vocab_size=4096, n_positions=256)).cuda().eval()
ids = torch.randint(0, 4096, (16, 64)).cuda()
cache = None
step = ids
for _ in range(24):
    output = model(input_ids=step, past_key_values=cache, use_cache=True)
    cache = output.past_key_values
    step = output.logits[:, -1:].argmax(-1)
    ids = torch.cat([ids, step], 1)
print(tuple(ids.shape))
