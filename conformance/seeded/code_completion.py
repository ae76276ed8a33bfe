"""A completion service: answers prompts one after the other with a static cache that all requests share."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.cache_utils import StaticCache

device = 'cuda'
torch.manual_seed(0)
ROOM, BATCH = 640, 16


def build():
    config = LlamaConfig(
        vocab_size=16000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=8, max_position_embeddings=ROOM, attn_implementation='sdpa')
    return LlamaForCausalLM(config).to(device, torch.float16).eval()


class Service:
    def __init__(self):
        self.model = build()
        self.cache = StaticCache(config=self.model.config, max_cache_len=ROOM)
        self.answers = {}

    @torch.inference_mode()
    def complete(self, number, prompt, new):
        self.cache.reset()
        ids = prompt.to(device)
        places = torch.arange(ids.size(1), device=device)
        made = []
        for _ in range(new):
            out = self.model(
                input_ids=ids, past_key_values=self.cache, cache_position=places, use_cache=True, logits_to_keep=1)
            ids = out.logits[:, -1].argmax(-1, keepdim=True)
            made.append(ids)
            places = places[-1:] + 1
        self.answers[number] = torch.cat(made, 1).cpu()


gen = torch.Generator().manual_seed(1)
service = Service()
for number in range(6):
    length = int(torch.randint(64, 400, (1,), generator=gen))
    service.complete(number, torch.randint(16000, (BATCH, length), generator=gen), 24)
    print(number, length, tuple(service.answers[number].shape))
