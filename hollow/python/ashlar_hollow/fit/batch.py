"""A batch in parts, whose gradients add up: half, a quarter, an eighth of it at a time."""

from .change import Change

NORMS = "_BatchNorm"


class Parts(Change):
    group = "batch"
    costs = "more time where a smaller batch fills the GPU less"
    without = "no DataLoader is iterated for training"
    count = 1
    loop = None

    def on_trainer(self, arguments, where):
        size = arguments.per_device_train_batch_size
        if size < self.count:
            return self.lacks("the batch is %d" % size)
        size, steps = -(-size // self.count), arguments.gradient_accumulation_steps * self.count
        self.applies(where, "per_device_train_batch_size=%d, gradient_accumulation_steps=%d" % (size, steps))
        if self.is_on:
            arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps = size, steps
        return None

    def on_loader(self, loader, where):
        parts = self.program.parts
        why = parts.why_not(loader)
        if why is not None:
            return self.lacks(why)
        size = getattr(loader.batch_sampler, "batch_size", None)
        if size is not None and size < self.count:
            return self.lacks("the batch is %d" % size)
        to = "" if size is None else " (batch_size=%d in place of %d)" % (-(-size // self.count), size)
        self.loop = (
            where,
            "batches of the DataLoader in %d parts%s" % (self.count, to),
            "(loss / %d).backward()" % self.count,
            "optimizer.step() and optimizer.zero_grad() after every %s part" % ORDINALS[self.count],
        )
        if self.is_on:
            parts.count = self.count
        return None

    def on_backward(self, loss, where):
        if self.loop is not None:  # of the loader that was iterated last: its loop trains
            self.applies(*self.loop)
        return loss

    def on_model(self, module, where):
        if any(NORMS in (kind.__name__ for kind in type(one).__mro__) and one.training for one in module.modules()):
            self.also_alters = "batch-norm"

    def on_step(self, optimizer, where):
        if not self.is_on and not self.program.has_trainer and self.program.most_backwards > 1:
            self.refuses("the program adds up %d backward passes itself: make its batch smaller there" % self.program.most_backwards)


class Half(Parts):
    name, title, price, count = "half-batch", "half of the batch, accumulated twice", 20, 2


class Quarter(Parts):
    name, title, price, count = "quarter-batch", "a quarter of the batch, accumulated 4 times", 40, 4


class Eighth(Parts):
    name, title, price, count = "eighth-batch", "an eighth of the batch, accumulated 8 times", 60, 8


ORDINALS = {2: "2nd", 4: "4th", 8: "8th"}
