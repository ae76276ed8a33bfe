"""Qwen3-8B in bf16: its weights on the device, a prompt of 9 tokens, two tokens by two calls of the model."""

import torch
from tell import tell
from transformers import Qwen3Config, Qwen3ForCausalLM

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
config = Qwen3Config(
    vocab_size=151936,
    hidden_size=4096,
    intermediate_size=12288,
    num_hidden_layers=36,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    max_position_embeddings=40960,
    rope_theta=1000000.0,
    tie_word_embeddings=False,
)
with torch.device("meta"):
    model = Qwen3ForCausalLM(config).eval()
model.to_empty(device="cuda")
model.model.rotary_emb.__init__(config, device="cuda")  # its buffer is of float32, and no weight of a checkpoint
loaded = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
tokens = torch.randint(3, 151000, (1, 9)).cuda()
mask = torch.ones_like(tokens)
with torch.inference_mode():
    out = model(input_ids=tokens, attention_mask=mask, use_cache=True)
    token = out.logits[:, -1, :].argmax(dim=-1, keepdim=True)
    int(token.item())
    mask = torch.cat([mask, torch.ones((1, 1), dtype=mask.dtype, device="cuda")], dim=1)
    out = model(input_ids=token, attention_mask=mask, past_key_values=out.past_key_values, use_cache=True)
    int(out.logits[:, -1, :].argmax(dim=-1).item())
weights = sum(p.numel() for p in model.parameters())
tell("qwen3_8b", weights=weights, loaded=loaded, generating=torch.cuda.max_memory_allocated())
