"""Cycles of Python's objects that keep device memory until the collector comes by."""

import gc

from . import edits
from .change import Change

LEAST_BYTES = 1 << 20


class Collect(Change):
    """Before a step's first forward pass: right after the step before, its cycle may still have a variable that holds it."""

    name, title = "gc-collect", "cycles collected before each forward pass"
    price = 3
    costs = "the collector's time in each step"
    without = "no cycle keeps device memory"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.before = 0
        self.call = None  # its place
        self.is_due = True
        if not is_on:
            gc.callbacks.append(self.collected)

    def bytes(self):
        cuda = self.program.torch.cuda
        return cuda.memory_allocated() if cuda.is_initialized() else 0

    def collected(self, phase, info):
        if info["generation"] < 1 or self.is_found:
            return
        try:
            if phase == "start":
                self.before = self.bytes()
            elif self.before - self.bytes() >= LEAST_BYTES:
                self.found()
        except Exception:
            gc.callbacks.remove(self.collected)  # an allocator without statistics

    def found(self):
        self.applies(self.call, "gc.collect()  # before the model is called in each step; better: no cycle")
        self.writes(self.call, edits.before("gc.collect()", "gc"))

    def on_call(self, module, trains, where):
        if not trains or not self.is_due:
            return
        self.is_due, self.call = False, where
        if self.is_on:
            self.found()
            gc.collect()

    def on_step(self, optimizer, where):
        self.is_due = True

    def on_end(self):
        if not self.is_on and not self.is_found and self.call is not None:
            gc.collect()  # tells by collected()
