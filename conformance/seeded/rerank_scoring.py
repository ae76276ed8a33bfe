"""Scores candidate answers with a small multilingual language model, then tunes it on the preferred ones.

transformers' model from a config; the rating is a head on the last position, training is ordinary next-token.
"""
import argparse

import torch
from torch.utils.checkpoint import checkpoint
from transformers import LlamaConfig, LlamaModel

device = 'cuda'
VOCAB = 152_000


class Language(torch.nn.Module):
    def __init__(self):
        super().__init__()
        config = LlamaConfig(
            vocab_size=VOCAB, hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8,
            num_key_value_heads=4, max_position_embeddings=1024, attn_implementation='sdpa', use_cache=False)
        self.body = LlamaModel(config)
        self.rating = torch.nn.Linear(512, 1)

    def hidden(self, ids):
        return self.body(ids).last_hidden_state

    def scores(self, hidden):
        return hidden @ self.body.embed_tokens.weight.t()


def part_loss(model, hidden, wanted):
    logits = model.scores(hidden).float()
    return torch.nn.functional.cross_entropy(logits, wanted, reduction='sum')


def token_loss(model, ids, width=None):
    hidden, wanted = model.hidden(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    width = width or len(wanted)
    total = 0.0
    for h, w in zip(hidden.split(width), wanted.split(width)):
        total = total + checkpoint(part_loss, model, h, w, use_reentrant=False)
    return total / len(wanted)


def candidates(questions, each, length, seed):
    gen = torch.Generator().manual_seed(seed)
    return torch.randint(VOCAB, (questions, each, length), generator=gen), torch.rand(questions, each, generator=gen)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--questions', type=int, default=6)
    ap.add_argument('--each', type=int, default=8)
    ap.add_argument('--length', type=int, default=512)
    ap.add_argument('--keep', type=int, default=4)
    args = ap.parse_args()
    model = Language().to(device=device, dtype=torch.bfloat16)
    opt = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
    ids, votes = candidates(args.questions, args.each, args.length, 0)
    for question, vote in zip(ids, votes):
        with torch.no_grad():
            rated = model.rating(model.hidden(question.to(device))[:, -1]).squeeze(-1).cpu()
        best = (rated.float() + vote).topk(args.keep).indices
        loss = token_loss(model, question[best].to(device))
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(f'loss {loss.item():.3f} kept {best.tolist()}')


if __name__ == '__main__':
    main()
