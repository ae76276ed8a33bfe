"""A batch in parts, whose gradients add up: half, a quarter, an eighth of it at a time. Or one of another size.

A loss that is a mean over what it counts (tokens, pixels, all but ignore_index) is that of the whole batch only where each part
counts its share: else the change alters results. What is counted is looked at in the run as it is.
"""

from . import edits, lines
from .change import Change


class Parts(Change):
    group = "batch"
    costs = "more time where a smaller batch fills the GPU less"
    without = "no DataLoader is iterated for training"
    count = 1
    loop = trainer = None
    samples = 0  # of a batch
    is_counted = False  # a loss is a mean over more than samples
    sites = ()  # of a plain loop: the DataLoader that is made, the loop

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.backward, self.waiting = None, {}  # places in that loop; of what waits for the last part

    def on_trainer(self, arguments, where):
        size = self.samples = arguments.per_device_train_batch_size
        if size < self.count:
            return self.lacks("the batch is %d" % size)
        size, steps = -(-size // self.count), arguments.gradient_accumulation_steps * self.count
        self.applies(where, "per_device_train_batch_size=%d, gradient_accumulation_steps=%d" % (size, steps))
        name = type(arguments).__name__
        self.writes_into(where, edits.keywords(name, per_device_train_batch_size=str(size), gradient_accumulation_steps=str(steps)))
        if self.is_on:
            arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps = size, steps
        return None

    def on_lightning(self, given, where):
        self.trainer = where
        if self.is_on:
            given["accumulate_grad_batches"] = self.count * (given.get("accumulate_grad_batches") or 1)

    def on_lightning_loader(self, loader):
        sampler, data = loader.batch_sampler, self.program.torch.utils.data
        if type(sampler) is not data.BatchSampler:
            return self.lacks("the DataLoader's batches are of a sampler of its own")
        if sampler.batch_size < self.count:
            return self.lacks("the batch is %d" % sampler.batch_size)
        self.samples = sampler.batch_size
        size = -(-sampler.batch_size // self.count)
        self.applies(
            self.trainer,
            "Trainer(accumulate_grad_batches=%d)" % self.count,
            "DataLoader(batch_size=%d) in place of %d" % (size, sampler.batch_size),
        )
        self.writes_into(self.trainer, edits.keywords("Trainer", accumulate_grad_batches=str(self.count)))
        self.writes(self.program.loaders.get(loader), edits.smaller_batch(self.count))
        if self.is_on:
            vars(loader)["batch_sampler"] = data.BatchSampler(sampler.sampler, size, sampler.drop_last)
        return None

    def on_loader(self, loader, where):
        parts = self.program.parts
        why = parts.why_not(loader)
        if why is not None:
            return self.lacks(why)
        size = getattr(loader.batch_sampler, "batch_size", None)
        if size is not None and size < self.count:
            return self.lacks("the batch is %d" % size)
        self.samples = size or 0
        to = "" if size is None else " (batch_size=%d in place of %d)" % (-(-size // self.count), size)
        self.loop = (
            where,
            "batches of the DataLoader in %d parts%s" % (self.count, to),
            ("accelerator.backward(loss / %d)" if parts.ahead is not None else "(loss / %d).backward()") % self.count,
            "optimizer.step() and optimizer.zero_grad() after every %s part" % ORDINALS[self.count],
        )
        made = self.program.loaders.get(loader) if parts.ahead is None else self.program.made_by_program(loader)
        self.sites = (made, where)
        if self.is_on:
            parts.count = self.count
        return None

    def on_backward(self, loss, where):
        if self.loop is not None:  # of the loader that was iterated last: its loop trains
            self.applies(*self.loop)
            self.backward = where
        return loss

    def on_waiting(self, where):
        if self.is_on and self.loop is not None:
            self.waiting.setdefault(lines.key(where), where)

    def on_zero_grad(self, set_to_none, where):
        self.on_waiting(where)
        return set_to_none

    def edits(self):
        if self.backward is None:
            return Change.edits(self)
        return [(edits.in_parts(self.count), list(self.sites) + [self.backward] + list(self.waiting.values()))]

    def on_model(self, module, where):
        self.mark_norms(module)

    def on_mean(self, targets, ignored):
        """A loss is a mean over the targets but those ignored. Their values are looked at where they are there."""
        if self.is_on or not self.samples or targets.is_floating_point() or self.also_alters == COUNTS:
            return
        samples = targets.shape[0] if targets.dim() > 1 else self.samples
        self.is_counted = self.is_counted or targets.numel() > samples
        values = self.program.values_of(targets)
        if values is None or values.numel() % samples:
            return
        size = -(-samples // self.count) * (values.numel() // samples)
        parts = values.reshape(-1).ne(ignored).split(size)
        shares = [(int(part.sum()), part.numel()) for part in parts]
        if any(counted * shares[0][1] != shares[0][0] * of for counted, of in shares):
            self.mark_counts()

    def on_end(self):
        if self.is_counted and self.program.lengths_vary():
            self.mark_counts()  # parts are as long as their own longest sample

    def mark_counts(self):
        if self.also_alters:
            self.costs += "; batch norm counts each part"
        self.also_alters = COUNTS

    def on_step(self, optimizer, where):
        self.on_waiting(where)
        if not self.is_on and not self.program.has_trainer and self.program.most_backwards > 1:
            self.refuses("the program adds up %d backward passes itself: make its batch smaller there" % self.program.most_backwards)


class Half(Parts):
    name, title, price, count = "half-batch", "half of the batch, accumulated twice", 20, 2


class Quarter(Parts):
    name, title, price, count = "quarter-batch", "a quarter of the batch, accumulated 4 times", 40, 4


class Eighth(Parts):
    name, title, price, count = "eighth-batch", "an eighth of the batch, accumulated 8 times", 60, 8


COUNTS = "loss-weights"
ORDINALS = {2: "2nd", 4: "4th", 8: "8th"}


class Size(Change):
    """Batches of so many samples, as "batch-size=24" asks; without a number it only looks on, and tells the batch of a training."""

    name, title = "batch-size", "a batch of another size"
    without = "no DataLoader is iterated for training"
    size = 0

    def __init__(self, program, size=0):
        Change.__init__(self, program, size > 0)
        self.size = size
        if size:
            self.name = "batch-size=%d" % size
        self.found = self.samples = 0  # the batch, and the samples that there are
        self.trainer = None

    def batch(self):
        """For the facts of a run."""
        told = self.told()
        return {"size": self.found, "samples": self.samples, "where": told["where"], "why_not": told["why_not"]}

    def on_trainer(self, arguments, where):
        self.trainer = where
        self.found = arguments.per_device_train_batch_size
        self.applies(where, "per_device_train_batch_size=%d" % (self.size or self.found))
        if self.is_on:
            arguments.per_device_train_batch_size = self.size

    def on_lightning(self, given, where):
        self.trainer = where

    def on_lightning_loader(self, loader):
        return self.change(loader, self.trainer)

    def on_loader(self, loader, where):
        return self.change(loader, where)

    def on_framework_loader(self, loader):
        if not self.samples and hasattr(loader.dataset, "__len__"):
            self.samples = len(loader.dataset)

    def change(self, loader, where):
        data = self.program.torch.utils.data
        sampler = loader.batch_sampler
        if type(sampler) is not data.BatchSampler:
            return self.lacks("the DataLoader makes no batches itself" if sampler is None else "its batches are of a sampler of its own")
        if self.size and getattr(loader, "_iterator", None) is not None:
            return self.lacks("the workers of the DataLoader had been started before")
        if not self.is_found:
            self.found, self.samples = sampler.batch_size, len(sampler.sampler)
        self.applies(where, "DataLoader(batch_size=%d)" % (self.size or self.found))
        if self.is_on and sampler.batch_size != self.size:
            vars(loader)["batch_sampler"] = data.BatchSampler(sampler.sampler, self.size, sampler.drop_last)
        return None
