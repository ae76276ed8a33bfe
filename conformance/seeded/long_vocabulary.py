# %% [markdown]
# Pretraining a tiny llama with a multilingual tokenizer (128k tokens)

# %%
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from note import note

# %%
config = LlamaConfig(
    vocab_size=128256,
    hidden_size=256,
    intermediate_size=768,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=1024,
    tie_word_embeddings=True,
    use_cache=False,
)
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")

# %%
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
micro_batch, seq_len = 8, 1024

# %%
model.train()
for step in range(6):
    input_ids = torch.randint(0, config.vocab_size, (micro_batch, seq_len)).cuda()
    out = model(input_ids=input_ids, labels=input_ids)
    note(2 * out.logits.nbytes)  # and what log_softmax keeps
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step)
