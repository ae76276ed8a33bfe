"""Llama-3-8B: LoRA by peft, 8-bit AdamW by bitsandbytes, gradient checkpointing, 2 steps of 2 x 2,048 tokens."""

import bitsandbytes
import torch
from peft import LoraConfig, get_peft_model
from tell import tell
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
config = LlamaConfig(
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    max_position_embeddings=8192,
    rope_theta=500000.0,
)
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
optimizer = bitsandbytes.optim.AdamW8bit([p for p in model.parameters() if p.requires_grad])
model.train()
for steps in range(1, 3):
    tokens = torch.randint(0, 128000, (2, 2048), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
tell("llama8b_lora", steps=steps, weights=sum(p.numel() for p in model.parameters()))
