"""The samples of a DataLoader: how long each is, and batches of them in another order.

    lengths = lengths_of(torch, dataset)          # the data set alone, no model; None: it took too long
    with ordered(loader, call):                   # an iterator that is made now takes call(batches) for the loader's batches
        batches = iter(loader)

Random numbers that reading a sample draws are given back: the program draws what it would have drawn.
"""

import contextlib
import random
import sys
import time

MOST_SECONDS = 20


def size_of(torch, sample):
    """Numbers in it: of a text its characters."""
    if isinstance(sample, torch.Tensor):
        return sample.numel()
    if hasattr(sample, "items"):
        return sum(size_of(torch, one) for _, one in sample.items())
    if isinstance(sample, (list, tuple)):
        plain = [one for one in sample if isinstance(one, (int, float))]
        return len(plain) + sum(size_of(torch, one) for one in sample if not isinstance(one, (int, float)))
    size = getattr(sample, "size", None)  # numpy's
    return len(sample) if isinstance(sample, str) else size if isinstance(size, int) else 0


def lengths_of(torch, dataset):
    began, out = time.monotonic(), []
    with unseen_draws(torch):
        for index in range(len(dataset)):
            out.append(size_of(torch, dataset[index]))
            if time.monotonic() - began > MOST_SECONDS:
                return None
    return out


@contextlib.contextmanager
def unseen_draws(torch):
    numpy = sys.modules.get("numpy")
    state, plain, drawn = torch.get_rng_state(), random.getstate(), numpy and numpy.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(plain)
        if numpy:
            numpy.random.set_state(drawn)


@contextlib.contextmanager
def ordered(loader, call):
    whole = loader.batch_sampler
    vars(loader)["batch_sampler"] = _Ordered(whole, call)
    try:
        yield
    finally:
        vars(loader)["batch_sampler"] = whole


class _Ordered(object):
    """A batch sampler whose batches of an epoch are all there before the first is given."""

    def __init__(self, whole, call):
        self.whole, self.call = whole, call

    def __iter__(self):
        return iter(self.call([list(batch) for batch in self.whole]))

    def __len__(self):
        return len(self.whole)

    def __getattr__(self, name):
        return getattr(self.whole, name)


def longest_together(batches, lengths):
    """The longest samples in the first batch; the others after them in their order. Batches have the sizes that they had."""
    samples = [index for batch in batches for index in batch]
    first = sorted(range(len(samples)), key=lambda at: -lengths[samples[at]])[:len(batches[0])] if batches else []
    chosen = set(first)
    order = [samples[at] for at in first] + [one for at, one in enumerate(samples) if at not in chosen]
    return cut(order, [len(batch) for batch in batches])


def of_one_length(batches, lengths):
    """Neighbours by length in a batch; the batch of the longest first, the others where the program's first sample of each stood."""
    samples = [index for batch in batches for index in batch]
    place = {index: at for at, index in enumerate(samples)}
    made = cut(sorted(samples, key=lambda index: -lengths[index]), [len(batch) for batch in batches])
    return made[:1] + sorted(made[1:-1], key=lambda batch: min(place[index] for index in batch)) + made[1:][-1:]


def longest_batch_first(batches, lengths):
    if not batches:
        return batches
    most = max(range(len(batches)), key=lambda at: len(batches[at]) * max(lengths[index] for index in batches[at]))
    return [batches[most]] + batches[:most] + batches[most + 1:]


def cut(samples, sizes):
    out, begin = [], 0
    for size in sizes:
        out.append(samples[begin:begin + size])
        begin += size
    return out
