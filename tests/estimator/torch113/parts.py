"""What several of the models here are made of."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Returned:
    """What a model's call returns; it ends part by part in this order."""

    def __init__(self, **parts):
        self.__dict__.update(parts)


def checkpointed(module, *inputs):
    """The reentrant form, as gradient_checkpointing_enable() makes layers run. No dropout: no random state is kept."""
    return checkpoint(module, *inputs, preserve_rng_state=False)


def next_token_loss(logits, labels):
    shorter = logits[..., :-1, :].contiguous()
    following = labels[..., 1:].contiguous()
    return functional.cross_entropy(shorter.view(-1, shorter.size(-1)), following.view(-1))


class RootMeanSquare(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        mean = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(mean + 1e-6)
        return self.weight * x


class LanguageModel(nn.Module):
    """A decoder under a head that may be its embedding, with the loss of each next token."""

    def __init__(self, stack, vocabulary, is_tied):
        super().__init__()
        self.stack = stack
        self.head = nn.Linear(stack.tokens.embedding_dim, vocabulary, bias=False)
        if is_tied:
            self.head.weight = stack.tokens.weight

    def forward(self, input_ids, labels):
        below = self.stack(input_ids)
        x = below.last
        logits = self.head(x)
        loss = next_token_loss(logits, labels)
        return Returned(loss=loss, logits=logits, kept=below.kept)
