"""Yes/no reranking of passages with a causal LM."""
from __future__ import annotations

import heapq
from typing import Iterable, NamedTuple

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

YES, NO = 9693, 2152


class Passage(NamedTuple):
    key: str
    tokens: int


class Reranker:
    def __init__(self, max_length: int = 512):
        config = Qwen2Config(vocab_size=151_936, hidden_size=896, intermediate_size=4864, num_hidden_layers=12,
                             num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=4096,
                             tie_word_embeddings=True, use_cache=False)
        with torch.device("cuda"):
            self.lm = Qwen2ForCausalLM(config).to(torch.bfloat16).eval()
        self.max_length = max_length
        self.pairs_scored = 0

    def encode(self, query: str, passages: list[Passage]) -> torch.Tensor:
        # left padding: the last position is the answer of every row
        ids = torch.zeros(len(passages), self.max_length, dtype=torch.long)
        for row, passage in enumerate(passages):
            n = min(self.max_length, passage.tokens + len(query.split()))
            ids[row, -n:] = torch.randint(1, 151_000, (n,))
        return ids.cuda()

    @torch.inference_mode()
    def score(self, query: str, passages: list[Passage]) -> list[float]:
        ids = self.encode(query, passages)
        logits = self.lm(input_ids=ids, use_cache=False).logits
        last = logits[:, -1, [NO, YES]].float()
        self.pairs_scored += len(passages)
        return last.softmax(-1)[:, 1].tolist()

    def top(self, query: str, passages: Iterable[Passage], k: int, batch: int) -> list[str]:
        passages = list(passages)
        heap: list[tuple[float, str]] = []
        for lo in range(0, len(passages), batch):
            part = passages[lo:lo + batch]
            for passage, score in zip(part, self.score(query, part)):
                item = (score, passage.key)
                if len(heap) < k:
                    heapq.heappush(heap, item)
                else:
                    heapq.heappushpop(heap, item)
        return [key for _, key in sorted(heap, reverse=True)]


def corpus(query_no: int, n: int) -> list[Passage]:
    return [Passage(f"q{query_no}-p{i}", 90 + (i * 37) % 400) for i in range(n)]


if __name__ == "__main__":
    torch.manual_seed(0)
    reranker = Reranker()
    for number, query in enumerate(["how do glaciers move", "causes of the 1873 panic", "replace a bike chain"]):
        best = reranker.top(query, corpus(number, 96), k=5, batch=32)
        print(query, "->", best[:3])
    print(reranker.pairs_scored, "pairs")
