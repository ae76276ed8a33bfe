"""Tokens spread evenly over experts by the program itself: what `ashlar dry-run --routing balanced` is held to."""
import torch


def spread_by_hand(experts, k):
    """The choice goes into the tensor that topk, or argmax for one of k after the other, made: no memory is asked for."""
    best, largest, calls = torch.topk, torch.argmax, [0]

    def topk(scores, k, dim=-1, *args, **kwargs):
        values, indices = best(scores, k, dim, *args, **kwargs)
        if scores.shape[-1] == experts and dim != 0:
            indices.data.copy_((torch.arange(indices.numel()) % experts).reshape(indices.shape))
        return values, indices

    def argmax(scores, *args, **kwargs):
        made = largest(scores, *args, **kwargs)
        if scores.ndim == 2 and made.ndim == 1 and scores.shape[-1] == experts:
            made.data.copy_((torch.arange(made.numel()) * k + calls[0] % k) % experts)
            calls[0] += 1
        return made

    torch.topk, torch.argmax = topk, argmax
