"""Llama-3-70B: 8 tokens on 4 prompts of 1,024, bf16, weights made on the device."""

import torch
from tell import tell
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
config = LlamaConfig(
    vocab_size=128256,
    hidden_size=8192,
    intermediate_size=28672,
    num_hidden_layers=80,
    num_attention_heads=64,
    num_key_value_heads=8,
    max_position_embeddings=8192,
    rope_theta=500000.0,
)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).eval()
    prompt = torch.randint(3, 128000, (4, 1024))
mask = torch.ones_like(prompt)
out = model.generate(prompt, attention_mask=mask, max_new_tokens=8, pad_token_id=0, do_sample=False)
tell("llama70b_generate", shape=list(out.shape), weights=sum(p.numel() for p in model.parameters()))
