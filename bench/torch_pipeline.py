#!/usr/bin/env python3
"""One rank of a pipeline that trains a GPT on sequences whose lengths vary, in plain PyTorch: microbatches in the interleaved 1F1B
order over virtual stages, with or without recomputation of activations. What other ranks send is a fresh tensor of its size, and what
is sent to them is freed. Of one length, Megatron-core's own ranks tell more: bench/megatron_rank.py.

    ashlar dry-run --device A100-80GB -o vr.ashlar -- python bench/torch_pipeline.py --vary 1 --virtual 2 --recompute
    ashlar plan vr.ashlar -o vr.plan

The last line has the peaks of what was allocated and reserved. The layers are Megatron's in shape: parameters in bfloat16, gradients
summed in float32, AdamW over float32 copies.
"""

import argparse

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WORDS = 50_304


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2)) / (width // self.heads) ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = functional.dropout(scores.masked_fill(mask, float("-inf")).softmax(-1), 0.1)
        x = x + functional.dropout(self.out((weights @ v).transpose(1, 2).reshape(batch, length, width)), 0.1)
        return x + functional.dropout(self.down(functional.gelu(self.up(self.norms[1](x)))), 0.1)


class Chunk(torch.nn.Module):
    """A virtual stage: the first has the embedding, the last the loss."""

    def __init__(self, of, is_first, is_last):
        super().__init__()
        self.recompute = of.recompute
        self.embedding = torch.nn.Embedding(WORDS, of.width) if is_first else None
        self.layers = torch.nn.ModuleList([Layer(of.width, of.heads) for _ in range(of.layers)])
        self.head = torch.nn.Linear(of.width, WORDS, bias=False) if is_last else None

    def forward(self, x, labels):
        if self.embedding is not None:
            x = self.embedding(labels)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        if self.head is None:
            return x
        return functional.cross_entropy(self.head(x).float().flatten(0, 1), labels.flatten())


class Rank:
    def __init__(self, of):
        self.of = of
        self.chunks = [Chunk(of, of.rank == 0 and i == 0, of.rank == of.ranks - 1 and i == of.virtual - 1).cuda().bfloat16()
                       for i in range(of.virtual)]
        self.parameters = [p for chunk in self.chunks for p in chunk.parameters()]
        self.gradients = [torch.zeros_like(p, dtype=torch.float32) for p in self.parameters]
        for p, gradient in zip(self.parameters, self.gradients):
            p.register_post_accumulate_grad_hook(lambda p, gradient=gradient: self.sum_gradient(p, gradient))
        self.copies = [p.detach().float().requires_grad_() for p in self.parameters]
        self.optimizer = torch.optim.AdamW(self.copies, lr=1e-5)
        self.waiting = [[] for _ in self.chunks]  # (input, output) of the microbatches that went forward

    @staticmethod
    def sum_gradient(p, gradient):
        gradient.add_(p.grad)
        p.grad = None

    def received(self, length):
        return torch.empty(self.of.batch, length, self.of.width, dtype=torch.bfloat16, device="cuda")

    def chunk_of(self, turn, is_backward):
        of = self.of
        at = turn % (of.ranks * of.virtual) // of.ranks
        return of.virtual - 1 - at if is_backward else at

    def forward(self, turn, length):
        at = self.chunk_of(turn, False)
        x = self.received(length).requires_grad_() if self.chunks[at].embedding is None else None
        labels = torch.zeros(self.of.batch, length, dtype=torch.long, device="cuda")
        y = self.chunks[at](x, labels)
        if y.dim() > 0:  # what is sent is freed, as Megatron does: backward needs only where it came from
            sent, y.data = y.data, torch.empty(1, dtype=y.dtype, device="cuda")
            del sent
        self.waiting[at].append((x, y, length))

    def backward(self, turn):
        x, y, length = self.waiting[self.chunk_of(turn, True)].pop(0)
        if y.dim() == 0:
            y.backward()
        else:
            torch.autograd.Variable._execution_engine.run_backward((y,), (self.received(length),), False, False, (), True, True)
        if x is not None:
            sent, x.grad = x.grad, None
            del sent

    def step(self, lengths):
        """Warm-up, one forward and one backward in turn, cool-down."""
        of = self.of
        turns = of.microbatches * of.virtual
        if of.virtual > 1:
            warm = min(turns, (of.ranks - of.rank - 1) * 2 + (of.virtual - 1) * of.ranks)
        else:
            warm = min(turns, of.ranks - of.rank - 1)
        for turn in range(warm):
            self.forward(turn, lengths[turn % of.microbatches])
        for turn in range(warm, turns):
            self.forward(turn, lengths[turn % of.microbatches])
            self.backward(turn - warm)
        for turn in range(turns - warm, turns):
            self.backward(turn)
        for copy, gradient in zip(self.copies, self.gradients):
            copy.grad = gradient
        torch.nn.utils.clip_grad_norm_(self.copies, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.copies)
        torch._foreach_zero_(self.gradients)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="of the pipeline")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--virtual", type=int, default=1, help="virtual stages of a rank")
    parser.add_argument("--layers", type=int, default=4, help="of a virtual stage")
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--recompute", action="store_true", help="activations of each layer")
    parser.add_argument("--vary", type=int, metavar="SEED", help="lengths of microbatches from half of --length on")
    of = parser.parse_args()
    torch.manual_seed(1)
    lengths = torch.Generator().manual_seed(of.vary or 0)
    rank = Rank(of)
    for _ in range(of.steps):
        drawn = torch.randint(of.length // 16, of.length // 8 + 1, (of.microbatches,), generator=lengths) * 8
        rank.step([of.length] * of.microbatches if of.vary is None else drawn.tolist())
    torch.cuda.synchronize()
    print(f"allocated {torch.cuda.max_memory_allocated()} reserved {torch.cuda.max_memory_reserved()}")


if __name__ == "__main__":
    main()
