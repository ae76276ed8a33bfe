"""Answers to short prompts, by a Llama in bf16 whose layers take most of the memory."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=1536, intermediate_size=4096, num_hidden_layers=12, num_attention_heads=12, vocab_size=8192)
model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
model = model.cuda()
for _ in range(2):
    prompts = torch.randint(0, 8192, (2, 64)).cuda()
    answers = model.generate(prompts, max_new_tokens=8, do_sample=False)
    print(tuple(answers.shape))
