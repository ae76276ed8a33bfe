"""Answers to long prompts, by a small Llama in bf16."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16, vocab_size=16384, max_position_embeddings=4096)
model = LlamaForCausalLM(config).to(torch.bfloat16)
model.eval()
model = model.to("cuda")
for _ in range(2):
    prompts = torch.randint(0, 16384, (16, 1500)).to("cuda")
    answers = model.generate(prompts, max_new_tokens=24, do_sample=False)
    print(tuple(answers.shape))
