"""LoRA by peft on a Llama, gradient checkpointing, AdamW; with 8 bits by bitsandbytes where the argument says so."""

import sys

import torch
from peft import LoraConfig, get_peft_model
from tell import tell
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=32)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).to(torch.bfloat16)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
model.enable_input_require_grads()
trained = [p for p in model.parameters() if p.requires_grad]
if "bitsandbytes" in sys.argv[1:]:
    import bitsandbytes

    optimizer = bitsandbytes.optim.AdamW8bit(trained)
else:
    optimizer = torch.optim.AdamW(trained)
model.train()
for _ in range(2):
    tokens = torch.randint(0, 32000, (2, 1024), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
tell("lora", trained=sum(p.numel() for p in trained))
