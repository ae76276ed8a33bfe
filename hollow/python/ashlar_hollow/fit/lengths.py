"""Shorter sequences: what a DataLoader gives is cut behind so many tokens, as "length=256" asks.

Without a number it looks on, and asks for half of the longest sequence that was trained with.
"""

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

    def on_batches(self, loader, where):
        self.place = where or ""
        if not self.is_on:
            return
        self.applies(where, *self.told_lines())
        if not isinstance(loader.collate_fn, _Cut):
            loader.collate_fn = _Cut(self.program.torch, loader.collate_fn, self.most)

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


class _Cut(object):
    """In the place of a collate function; workers get it too."""

    def __init__(self, torch, collate, most):
        self.torch, self.collate, self.most = torch, collate, most

    def __call__(self, samples):
        batch = self.collate(samples)
        length = max([0] + [one.shape[1] for one in tensors(self.torch, batch) if is_tokens(self.torch, one)])
        return cut(self.torch, batch, length, self.most) if length > self.most else batch


def is_tokens(torch, one):
    return isinstance(one, torch.Tensor) and one.dim() == 2 and not one.is_floating_point() and one.dtype != torch.bool


def tensors(torch, batch):
    if isinstance(batch, torch.Tensor):
        return [batch]
    parts = [one for _, one in batch.items()] if hasattr(batch, "items") else batch if isinstance(batch, (list, tuple)) else []
    return [one for part in parts for one in tensors(torch, part)]


def cut(torch, batch, length, most):
    if isinstance(batch, torch.Tensor):
        return batch[:, :most] if batch.dim() > 1 and batch.shape[1] == length else batch
    if hasattr(batch, "items"):
        for name, one in list(batch.items()):
            batch[name] = cut(torch, one, length, most)
        return batch
    return type(batch)(cut(torch, one, length, most) for one in batch) if isinstance(batch, (list, tuple)) else batch
