"""Generation with a KV cache: the loop ends by a flag on the device, which counts the tokens."""

import sys

import torch
from tell import tell
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
    prompt = torch.randint(3, 32000, (4, 256))
new = int(sys.argv[1]) if len(sys.argv) > 1 else 16
mask = torch.ones_like(prompt)
out = model.generate(prompt, attention_mask=mask, max_new_tokens=new, pad_token_id=0, do_sample=False)
tell("generate", shape=list(out.shape), prompt_kept=bool((out[:, :256] == prompt).all()))
