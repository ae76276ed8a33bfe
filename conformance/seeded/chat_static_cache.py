"""Chat loop: each turn generates with a cache of its own, and the transcript is kept."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

config = LlamaConfig(vocab_size=8192, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                     num_key_value_heads=8, max_position_embeddings=2048)
with torch.device("cuda"):
    model = LlamaForCausalLM(config).eval()


class Conversation:
    def __init__(self, window=256):
        self.window = window
        self.turns = []

    def context(self):
        return torch.cat(self.turns, 1)[:, -self.window:] if self.turns else torch.zeros(32, 1, dtype=torch.long)

    def add(self, ids):
        self.turns.append(ids.cpu())


@torch.inference_mode()
def reply(ids, new_tokens=8):
    cache = StaticCache(config=config, max_cache_len=512)
    ids = ids.cuda()
    pos = torch.arange(ids.size(1), device="cuda")
    made = []
    for _ in range(new_tokens):
        out = model(input_ids=ids, past_key_values=cache, cache_position=pos, use_cache=True, logits_to_keep=1)
        ids = out.logits[:, -1].argmax(-1, keepdim=True)
        made.append(ids)
        pos = pos[-1:] + 1
    return torch.cat(made, 1)


chat = Conversation()
for turn in range(3):
    chat.add(torch.randint(0, 8192, (32, 64)))
    chat.add(reply(chat.context()))
    print("turn", turn)
