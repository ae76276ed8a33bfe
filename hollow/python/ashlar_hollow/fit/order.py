"""The order of samples, where their lengths vary: the longest of them in one batch, which comes first; batches of about one length."""

from . import samples
from .change import Change


class Order(Change):
    """Where a DataLoader shuffles, any of its samples may meet in a batch."""

    without = "no DataLoader is iterated for training"
    lengths = None  # of the data set that was read, and which it was

    def why_one_order(self, loader):
        data = self.program.torch.utils.data
        if loader.batch_sampler is None:
            return "the DataLoader makes no batches itself"
        if isinstance(loader.dataset, data.IterableDataset) or not hasattr(loader.dataset, "__len__"):
            return "the data set is iterable: its samples come in one order"
        if getattr(loader, "_iterator", None) is not None:
            return "the workers of the DataLoader had been started before"
        if type(loader.batch_sampler) is data.BatchSampler and isinstance(loader.batch_sampler.sampler, data.SequentialSampler):
            return "the DataLoader does not shuffle: its samples come in one order"
        return None

    def read(self, dataset):
        if self.lengths is None or self.lengths[0] is not dataset:
            self.lengths = (dataset, samples.lengths_of(self.program.torch, dataset))
        return self.lengths[1]

    def on_batches(self, loader, where):
        why = self.why_one_order(loader)
        if why is not None:
            return self.lacks(why)
        if not self.is_on:
            return self.found(loader, where)
        lengths = self.read(loader.dataset)
        if lengths is None:
            return self.refuses("the samples could not all be read in %d s" % samples.MOST_SECONDS)
        self.found(loader, where)
        is_plain = self.is_plain(loader)  # before its sampler is another one
        return lambda batches: self.order(is_plain, batches, lengths)

    def is_plain(self, loader):
        """Its batches are cut from the order of samples, and not chosen by a sampler of batches."""
        return type(loader.batch_sampler) is self.program.torch.utils.data.BatchSampler


class WorstFirst(Order):
    """What decides over all shuffles: no row, but the order of all runs where lengths vary."""

    name, title = "worst-first", "the longest samples in the first batch"
    alters = "order"

    def found(self, loader, where):
        self.applies(where, "no line: an order to run with")

    def order(self, is_plain, batches, lengths):
        make = samples.longest_together if is_plain else samples.longest_batch_first
        return make(batches, lengths)


class OneLength(Order):
    name, title = "one-length", "batches of about one length, the longest first"
    price = 25
    costs = "samples meet by their length, not by chance alone"
    alters = "order"

    place = None

    def found(self, loader, where):
        if not self.is_plain(loader):
            return self.lacks("its batches are of a sampler of its own")
        self.place = where or ""
        if self.is_on:
            self.applies(*self.told_place())
        return None

    def told_place(self):
        if self.program.has_trainer:
            return self.place, "group_by_length=True"
        return self.place, "DataLoader(batch_sampler=batches): cut from the indices sorted by the length of their samples, the longest first"

    def on_end(self):
        if self.is_on or self.place is None:
            return
        if self.program.lengths_vary():
            self.applies(*self.told_place())
        else:
            self.lacks("all batches are of one length")

    def order(self, is_plain, batches, lengths):
        return samples.of_one_length(batches, lengths)
