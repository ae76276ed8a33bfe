"""Parts of batches: a DataLoader's batch comes in several, and what the program does once a batch waits for the last of them.

    parts = Parts(program)
    parts.count = 2                      # batches come in halves
    for half in loader: ...              # step, zero_grad, clipping, schedulers: with the second alone

A loss that is a mean over its samples then has the gradients of the whole batch: each part's loss is weighted by its share of the
samples. The order of samples is the program's own, and so is the length of the loader.
Thread rule: the thread that trains.
"""

import collections

from . import hooks, lines


class Parts(object):
    def __init__(self, program):
        self.program = program
        self.count = 1
        self.part = None  # (share of the batch, whether it is its last), of the part under way
        self.is_pending = False  # gradients of this batch were made, and no step
        self.ahead = None  # of a loader that reads a batch ahead and is being started: what its parts are

    # --- what waits ---

    def waits(self):
        return self.part is not None and not self.part[1]

    def has_gradients(self):
        """Of parts whose step is still to come: they stay."""
        return self.part is not None and self.is_pending

    def scaled(self, loss):
        return loss if self.part is None or self.part[0] == 1 else loss * self.part[0]

    def went_backward(self):
        self.is_pending = True

    def stepped(self):
        self.is_pending = False

    def install(self):
        torch = self.program.torch
        nothing = torch.zeros  # of clipping: the norm
        hooks.put(torch.nn.utils, "clip_grad_norm_", self.waiting(lambda: nothing(())))
        hooks.put(torch.nn.utils, "clip_grad_value_", self.waiting(lambda: None))
        schedulers = torch.optim.lr_scheduler
        for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau", "OneCycleLR", "CyclicLR",
                     "CosineAnnealingWarmRestarts", "SequentialLR", "ChainedScheduler"):
            kind = getattr(schedulers, name, None)
            if kind is not None and "step" in vars(kind):
                hooks.put(kind, "step", self.waiting(lambda: None))
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
        for name in ("step", "unscale_", "update"):
            hooks.put(scaler, name, self.waiting(lambda: None))

    def waiting(self, instead):
        def call(original, *args, **kwargs):
            if self.part is not None:
                self.program.tell("on_waiting", lines.where())
            return instead() if self.waits() else original(*args, **kwargs)

        return call

    # --- the loader ---

    def why_not(self, loader):
        """Why its batches cannot be parted, in a few words; None where they can."""
        if loader.batch_sampler is None:
            return "the DataLoader makes no batches itself"
        if isinstance(loader.dataset, self.program.torch.utils.data.IterableDataset):
            return "the data set is iterable: where its last batch ends is not known"
        if type(loader).__iter__ is not self.program.torch.utils.data.DataLoader.__iter__:
            return "its %s reads ahead" % type(loader).__name__
        kept = getattr(getattr(loader, "_iterator", None), "_index_sampler", None)
        if self.count > 1 and kept is not None and not isinstance(kept, _Parted):
            return "the workers of the DataLoader had been started before"
        if not getattr(loader, "in_order", True):
            return "the DataLoader gives batches out of order"
        return None

    def iterate(self, original, loader, trains):
        """Its iterator; only where it is iterated for training the batches come in parts."""
        if self.count == 1 or self.why_not(loader) is not None or not (trains or loader.persistent_workers):
            return original(loader)
        whole = loader.batch_sampler
        vars(loader)["batch_sampler"] = _Parted(whole)
        kept = getattr(getattr(loader, "_iterator", None), "_index_sampler", None)  # of workers that stay
        sampler = kept if isinstance(kept, _Parted) else loader.batch_sampler
        sampler.count = self.count if trains else 1
        try:
            made = original(loader)
        finally:
            vars(loader)["batch_sampler"] = whole
        if not trains:
            return made
        if self.ahead is None:
            return _Iterator(self, made, sampler.told)
        self.ahead.append(sampler.told)
        return made

    def iterate_ahead(self, original, loader):
        """A loader that reads a batch ahead of the one that it gives: accelerate's."""
        batches, told = original(loader), []
        self.ahead = told
        try:
            for batch in batches:
                self.ahead = None
                if told:
                    self.part = told[-1].popleft() if told[-1] else None
                yield batch
        finally:
            self.ahead = None
            if told:  # one that evaluates amid a training has no parts
                self.part = None


class _Parted(object):
    """A batch sampler that cuts each batch."""

    def __init__(self, whole):
        self.whole, self.count = whole, 1
        self.told = collections.deque()  # of the parts that were handed out, which workers read ahead

    def __iter__(self):
        self.told.clear()
        for batch in self.whole:
            batch = list(batch)
            size = max(1, -(-len(batch) // self.count))
            for begin in range(0, len(batch), size):
                part = batch[begin:begin + size]
                self.told.append((len(part) / len(batch), begin + size >= len(batch)))
                yield part

    def __len__(self):
        return len(self.whole)


class _Iterator(object):
    def __init__(self, parts, made, told):
        self.parts, self.made, self.told = parts, made, told

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.made)

    def __getattr__(self, name):
        return getattr(self.made, name)

    def __next__(self):
        try:
            batch = next(self.made)
        except StopIteration:
            self.parts.part = None
            raise
        self.parts.part = self.told.popleft() if self.told else None
        return batch


def closed(args, kwargs):
    """A step that waits makes its gradients all the same, where the program gave it a closure."""
    closure = kwargs.get("closure", args[0] if args else None)
    return closure() if callable(closure) else None
