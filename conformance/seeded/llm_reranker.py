"""Rerank passages with a causal LM: score = P(yes) at the last position."""
import argparse
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

YES, NO = 9693, 2152


def build_model():
    config = Qwen2Config(
        vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=12,
        num_attention_heads=14, num_key_value_heads=2, max_position_embeddings=4096,
        tie_word_embeddings=True)
    return Qwen2ForCausalLM(config).to(torch.bfloat16)


class FakeTokenizer:
    """Stands for the real tokenizer, which needs a download."""

    pad_token_id = 0

    def __init__(self, seed=0):
        self.g = torch.Generator().manual_seed(seed)

    def encode(self, min_len, max_len):
        n = int(torch.randint(min_len, max_len + 1, (), generator=self.g))
        return torch.randint(10, 150000, (n,), generator=self.g)

    def pad(self, seqs, multiple=64):
        longest = max(len(s) for s in seqs)
        longest = -(-longest // multiple) * multiple
        ids = torch.full((len(seqs), longest), self.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, s in enumerate(seqs):  # left padding, so that the last position is the answer
            ids[row, -len(s):] = s
            mask[row, -len(s):] = 1
        return {"input_ids": ids, "attention_mask": mask}


class Reranker:
    def __init__(self, model, tokenizer, batch_size=16, device="cuda"):
        self.model = model.eval().to(device)
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.device = device

    @torch.inference_mode()
    def score_batch(self, pairs):
        inputs = {k: v.to(self.device) for k, v in self.tokenizer.pad(pairs).items()}
        out = self.model(**inputs, use_cache=False)
        last = out.logits[:, -1, :]
        both = torch.stack([last[:, NO], last[:, YES]], dim=1).float()
        return both.log_softmax(dim=1)[:, 1].exp().tolist()

    def rank(self, query, passages, top_k=10):
        pairs = [torch.cat([query, p]) for p in passages]
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i]), reverse=True)
        scores = [0.0] * len(pairs)
        for lo in range(0, len(order), self.batch_size):
            idx = order[lo:lo + self.batch_size]
            for i, s in zip(idx, self.score_batch([pairs[i] for i in idx])):
                scores[i] = s
        best = sorted(range(len(scores)), key=lambda i: -scores[i])
        return best[:top_k], scores


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--queries", type=int, default=3)
    ap.add_argument("--candidates", type=int, default=64)
    ap.add_argument("--batch-size", type=int, default=16)
    args = ap.parse_args()
    torch.manual_seed(0)
    tok = FakeTokenizer()
    reranker = Reranker(build_model(), tok, args.batch_size)
    for q in range(args.queries):
        began = time.time()
        query = tok.encode(16, 48)
        passages = [tok.encode(300, 900) for _ in range(args.candidates)]
        top, _ = reranker.rank(query, passages)
        print(f"query {q}: top {top[:5]} in {time.time() - began:.2f}s")


if __name__ == "__main__":
    main()
