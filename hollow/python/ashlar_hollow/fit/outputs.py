"""What a model gave, let go when its step is made, and not when the next forward pass has made its own.

Only what variables alone hold: a list, an object or a cycle that keeps it as well would keep it all the same.
"""

import gc
import inspect
import weakref

from . import edits, lines
from .change import Change
from .held import local

LEAST_BYTES = 1 << 20
MOST_LOOKS = 3  # at who holds an output: each goes over all objects


class Release(Change):
    name, title = "release-outputs", "what the model gave is let go after the step"
    price = 4
    without = "no output outlives its step"

    LINES = ("del outputs  # and what was made of them, right behind optimizer.step()",)

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.kept, self.holders = [], set()  # of the calls since the last step, weakly, and what they came in
        self.looks = 0
        self.variables = set()  # that hold such an output when a step is made
        self.seen, self.waiting = None, ()  # where such an output was still there when a step was made, and it

    def on_call(self, module, trains, where):
        if trains and self.seen is not None and any(one() is not None for one in self.waiting):
            self.applies(self.seen, *self.LINES)
        self.seen = None

    def on_output(self, module, output, trains, where):
        if trains and not self.program.has_trainer and not self.program.has_lightning:
            known = {storage_of(one) for one in module.parameters()}
            self.holders.update((id(output), id(getattr(output, "__dict__", None))))
            for one in tensors(self.program.torch, output):
                if one.is_cuda and one.grad_fn is not None and storage_of(one) not in known:
                    self.kept.append(weakref.ref(one))
        return output

    def on_step(self, optimizer, where):
        kept = [one for one in (kept() for kept in self.kept) if one is not None and size_of(one) >= LEAST_BYTES]
        holders, self.kept, self.holders = self.holders, [], set()
        if not kept:
            return self.lacks("no output outlives its step")
        if self.looks < MOST_LOOKS:
            self.looks += 1
            if not only_variables_hold(kept, holders):
                return self.refuses("something else than a variable keeps them")
        if self.why_not is not None:
            return None
        self.seen, self.waiting = where, [weakref.ref(one) for one in kept]
        if self.is_on:
            self.applies(where, *self.LINES)
            self.look_at_variables(kept, holders, where)
            for one in kept:
                one.data = one.new_empty(0)
        return None

    def look_at_variables(self, kept, holders, where):
        """Of the program's function that makes the step, or of its file: only there `del` lets go of all."""
        torch, known, reached = self.program.torch, {id(one) for one in kept}, set()
        for name, value in lines.frame().f_locals.items():
            is_given = id(value) in holders or isinstance(value, torch.Tensor)
            held = known & {id(one) for one in tensors(torch, value)} if is_given else set()
            reached |= held
            self.variables |= {name} if held else set()
        if reached != known:
            self.variables.add("")  # another function's
        self.written.clear()
        if "" not in self.variables:
            self.writes(where, edits.deleted_behind(sorted(self.variables)))


def only_variables_hold(kept, holders):
    """Those of frames that run are held by nothing that Python's collector knows."""
    return all(
        holder is kept or id(holder) in holders or inspect.isframe(holder) or (isinstance(holder, dict) and "__builtins__" in holder)
        for holder in gc.get_referrers(*kept)
    )


def storage_of(one):
    return local(one).untyped_storage().data_ptr()


def size_of(one):
    return local(one).numel() * one.element_size()


def tensors(torch, output):
    if isinstance(output, torch.Tensor):
        return [output]
    parts = list(output.values()) if hasattr(output, "values") and callable(output.values) else output
    return [one for part in parts for one in tensors(torch, part)] if isinstance(parts, (list, tuple)) else []
