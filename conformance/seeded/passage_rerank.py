"""Rerank passages with a causal LM: the score is the logit of "yes" after the prompt."""
import heapq
import itertools

import torch
from transformers import LlamaConfig, LlamaForCausalLM

YES, NO = 9454, 2753


class Reranker:
    def __init__(self, device='cuda'):
        config = LlamaConfig(vocab_size=151_936, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12,
                             num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=4096,
                             attn_implementation='sdpa')
        self.device = device
        self.model = LlamaForCausalLM(config).to(torch.bfloat16).to(device).eval()

    @torch.inference_mode()
    def score(self, prompts):
        longest = max(len(p) for p in prompts)
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):            # left padding: the last position is the answer's
            ids[row, longest - len(prompt):] = torch.tensor(prompt)
            mask[row, longest - len(prompt):] = 1
        out = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device), use_cache=False)
        last = out.logits[:, -1]
        pair = last[:, [YES, NO]].float().softmax(-1)
        return pair[:, 0].tolist()


def batched(items, size):
    it = iter(items)
    while chunk := list(itertools.islice(it, size)):
        yield chunk


def fake_prompts(count, seed):
    g = torch.Generator().manual_seed(seed)
    for _ in range(count):
        length = int(torch.randint(300, 900, (), generator=g))
        yield torch.randint(0, 151_000, (length,), generator=g).tolist()


def main():
    torch.manual_seed(0)
    reranker = Reranker()
    for query in range(6):
        best = []
        prompts = sorted(fake_prompts(32, seed=query), key=len)
        for number, chunk in enumerate(batched(prompts, 16)):
            for offset, score in enumerate(reranker.score(chunk)):
                heapq.heappush(best, (score, number * 16 + offset))
        print('query', query, 'top', heapq.nlargest(3, best), flush=True)


if __name__ == '__main__':
    main()
