"""When gradients go."""

from . import edits
from .change import Change


class SetToNone(Change):
    name, title = "set-to-none", "zero_grad frees the gradients"
    price = 0
    without = "no zero_grad(set_to_none=False)"

    def on_zero_grad(self, set_to_none, where):
        if not set_to_none:
            self.applies(where, "zero_grad(set_to_none=True)")
            self.writes_into(where, edits.keywords("zero_grad", set_to_none="True"))
        return True if self.is_on else set_to_none


class Early(Change):
    name, title = "early-zero-grad", "gradients freed right after the step, not after the next forward pass"
    price = 0
    without = "gradients are freed before each forward pass"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.stepped = None  # the place of the last step whose gradients were not freed
        self.is_late = False

    def on_call(self, module, trains, where):
        self.is_late = trains and self.stepped is not None
        if not self.is_late:
            return None
        self.found(self.stepped)
        return None

    def found(self, where):
        self.applies(where, "optimizer.zero_grad() right behind optimizer.step()")
        self.writes(where, edits.zero_right_behind)

    def on_zero_grad(self, set_to_none, where):
        self.stepped = None
        return set_to_none

    def on_step(self, optimizer, where):
        self.stepped = where
        if self.is_on:
            self.found(where)
            for group in optimizer.param_groups:
                for one in group["params"]:
                    one.grad = None
