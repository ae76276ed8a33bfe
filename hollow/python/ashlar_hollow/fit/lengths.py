"""Shorter sequences: what a DataLoader gives is cut behind so many tokens, as "length=256" asks.

Without a number it looks on, and asks for half of the longest sequence that was trained with.
"""

import collections
import inspect

from . import edits, lines
from .change import Change


class Cap(Change):
    name, title = "length", "sequences cut behind half of the longest"
    group = "length"
    price = 85
    costs = "what is cut off is not learned from"
    alters = "length"
    without = "no DataLoader is iterated for training"

    def __init__(self, program, most=0):
        Change.__init__(self, program, most > 0)
        self.most = most
        if most:
            self.name, self.title = "length=%d" % most, "sequences cut behind %d tokens" % most
        self.place = None
        self.cut = {}  # key of the place where loaders were made -> (that place, how many)

    def on_batches(self, loader, where):
        self.place = where or ""
        if not self.is_on:
            return
        self.applies(where, *self.told_lines())
        if not isinstance(loader.collate_fn, Shortened):
            self.count(loader)
            loader.collate_fn = Shortened(loader.collate_fn, self.most)

    def count(self, loader):
        """A loader of torch's own, which makes batches, has the program's own line."""
        is_plain = type(loader) is self.program.torch.utils.data.DataLoader and loader.batch_sampler is not None
        place = self.program.loaders.get(loader) if is_plain else None
        _, count = self.cut.get(lines.key(place), (place, 0))
        self.cut[lines.key(place)] = (place, count + 1)

    def edits(self):
        """Where each loader that was made at these places was cut: another one there would be cut too."""
        made = collections.Counter(lines.key(one) for places in self.program.readers.values() for one in places)
        if any(place is None or made[key] != count for key, (place, count) in self.cut.items()):
            return []
        edit = edits.collated(Shortened.__name__, self.most, inspect.getsource(Shortened))
        return [(edits.at_call(edit), [place]) for place, _ in self.cut.values()]

    def told_lines(self):
        return ("what the DataLoader gives cut: one[:, :%d] of each tensor of tokens, masks and labels" % self.most,)

    def on_end(self):
        longest = self.program.longest_tokens
        if self.is_on or self.place is None:
            return
        if longest < 2:
            return self.lacks("no model is called with batches of tokens")
        self.most = longest // 2
        self.name, self.title = "length=%d" % self.most, "sequences cut behind %d tokens" % self.most
        self.applies(self.place, *self.told_lines())


# What runs, and what the user's file gets.
class Shortened:
    """A collate function whose batches are cut: tokens, and what is as long as they are."""

    def __init__(self, collate, most):
        self.collate, self.most = collate, most

    def __call__(self, samples):
        batch = self.collate(samples)
        tokens = [one for one in self.tensors(batch) if one.dim() == 2 and "int" in str(one.dtype)]
        length = max([0] + [one.shape[1] for one in tokens])
        return self.cut(batch, length) if length > self.most else batch

    def tensors(self, batch):
        if hasattr(batch, "dtype"):
            return [batch] if hasattr(batch, "dim") else []
        parts = batch.values() if hasattr(batch, "items") else batch if isinstance(batch, (list, tuple)) else []
        return [one for part in parts for one in self.tensors(part)]

    def cut(self, batch, length):
        if hasattr(batch, "dim"):
            return batch[:, :self.most] if batch.dim() > 1 and batch.shape[1] == length else batch
        if hasattr(batch, "items"):
            for name, one in list(batch.items()):
                batch[name] = self.cut(one, length)
            return batch
        if not isinstance(batch, (list, tuple)):
            return batch
        parts = [self.cut(one, length) for one in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
