"""What a seeded program knows of its own sickness, in bytes: the last one noted, in the file that SEEDED_NOTE names.

Figures come from shapes, or from PyTorch's own counters at the moment that matters. A note allocates nothing.

    grown = Growth()
    for batch in batches:
        ...
        grown.note()                 # what steps leave behind
    with at_failure(stranded):       # counted while the failing frames still live
        train()
"""

import contextlib
import json
import os

import torch


def note(size):
    path = os.environ.get("SEEDED_NOTE")
    if path:
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"bytes": int(size)}, out)


def size_of(tensors):
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


def size_of_model(model):
    return size_of(list(model.parameters()) + list(model.buffers()))


def allocated():
    return torch.cuda.memory_allocated()


class Growth:
    """Bytes alive at the same place of every step, over what was alive before any step left something behind."""

    def __init__(self):
        self.first, self.steps = None, 0

    def note(self):
        """The first step also makes what stays for good, such as the optimizer's state: its own share is the mean's."""
        if self.first is None:
            self.first = allocated()
            return
        self.steps += 1
        grown = allocated() - self.first
        note(grown * (self.steps + 1) // self.steps)


@contextlib.contextmanager
def at_failure(count):
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        note(count())
        raise


def over(before):
    """Bytes alive beyond those of a moment before."""
    return lambda: allocated() - before


def stranded():
    """Free pieces of segments that hold a block in use: what the cache cannot give back."""
    return torch.cuda.memory_stats()["inactive_split_bytes.all.current"]


def blocks_of(size):
    """Blocks in use that were asked for with just this size."""
    blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return sum(b["requested_size"] for b in blocks if b["state"] == "active_allocated" and b["requested_size"] == size)


def free_in_private_pools(beside_the_largest=False):
    free = {}
    for segment in torch.cuda.memory_snapshot():
        pool = tuple(segment["segment_pool_id"])
        if pool != (0, 0):
            free[pool] = free.get(pool, 0) + segment["total_size"] - segment["active_size"]
    return sum(free.values()) - (max(free.values()) if beside_the_largest else 0)


def free_of_stream(stream):
    """Bytes cached and not in use that only this stream can have."""
    mine = [s for s in torch.cuda.memory_snapshot() if s["stream"] == stream.cuda_stream]
    return sum(segment["total_size"] - segment["active_size"] for segment in mine)
