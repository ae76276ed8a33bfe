"""What autocast keeps: a half-precision copy of each weight that it has met, from then to the end of its outermost block.

    castable = Castable(torch)                      # nothing where autocast keeps none now
    castable.add(tensors, parameter, index)         # of each parameter that the walk meets
    castable.cast(blocks, claims)                   # {index}: blocks that nobody holds and that are these copies

PyTorch keeps them in C++, where no object leads to them. They are told by what it does: with its cache on, each weight of
32 bits that wants a gradient has one copy of half its size. A few blocks that match by chance are no copies of a model.
"""

import collections

LEAST_SHARE = 0.25  # of what all copies together would take


class Castable(object):
    def __init__(self, torch):
        self.is_keeping = _is_keeping(torch)
        self.single = getattr(torch, "float32", None)
        self.found = {}  # index of a parameter's block -> whether it is cast

    def add(self, tensors, parameter, index):
        if self.is_keeping and self.single is not None and index is not None and index not in self.found:
            self.found[index] = tensors.is_trained(parameter, self.single)

    def cast(self, blocks, claims):
        left = collections.Counter(blocks.bytes_of(index) // 2 for index, is_cast in self.found.items() if is_cast)
        every, found = sum(size * count for size, count in left.items()), set()
        for index in range(len(blocks)):
            size = blocks.bytes_of(index)
            if index not in claims and left.get(size):
                left[size] -= 1
                found.add(index)
        is_much = sum(map(blocks.bytes_of, found)) >= LEAST_SHARE * every
        return found if is_much else set()


def _is_keeping(torch):
    """Within a block of autocast, by how deep it is; whether it is on is not to be asked: its own operations turn it off."""
    try:
        depth = torch.autocast_increment_nesting() - 1
        torch.autocast_decrement_nesting()
        return depth > 0 and bool(torch.is_autocast_cache_enabled())
    except Exception:
        return False
