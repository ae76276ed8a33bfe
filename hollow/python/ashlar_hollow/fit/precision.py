"""Sixteen bits: autocast around the forward pass and the loss, from the outermost module's call until backward; or weights."""

import os

from . import edits, lines
from .change import Change


class Autocast(Change):
    name, title = "autocast", "16-bit autocast"
    group = "precision"
    price = 10
    costs = "less time on tensor cores"
    alters = "precision"
    without = "no module was trained"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.context = None  # of the forward pass under way
        self.scaler = None
        self.began, self.stretches = None, {}  # (the call, backward) of each, by their places
        self.accelerator = None  # where accelerate's is made

    def kind(self):
        return "bfloat16" if has_bf16(self.program.torch) else "float16"

    def short_kind(self):
        return "bf16" if self.kind() == "bfloat16" else "fp16"

    def on_trainer(self, arguments, where):
        if arguments.bf16 or arguments.fp16:
            return self.lacks("already on: %s" % where)
        kind = self.short_kind()
        self.applies(where, "%s=True" % kind)
        self.writes_into(where, edits.keywords(type(arguments).__name__, **{kind: "True"}))
        if self.is_on:
            setattr(arguments, kind, True)
        return None

    def on_lightning(self, given, where):
        if str(given.get("precision") or "32-true") not in ("32", "32-true"):
            return self.lacks("precision=%r: %s" % (given["precision"], where))
        kind = "bf16-mixed" if self.kind() == "bfloat16" else "16-mixed"
        self.applies(where, 'Trainer(precision="%s")' % kind)
        self.writes_into(where, edits.keywords("Trainer", precision='"%s"' % kind))
        if self.is_on:
            given["precision"] = kind
        return None

    def on_accelerator(self, given, where):
        if self.has_switch():  # a Trainer's own, which has the Trainer's precision
            return None
        kind = given.get("mixed_precision") or os.environ.get("ACCELERATE_MIXED_PRECISION") or "no"
        if str(kind) != "no":
            return self.refuses("mixed_precision=%r: %s" % (str(kind), where))
        self.accelerator = where
        if self.is_on:
            given["mixed_precision"] = self.short_kind()
        return None

    def on_autocast(self, where):
        """Amid a call that trains: a model's own, around its forward pass or a part of it."""
        if not self.is_on:
            self.refuses("already on in the forward pass: %s" % where)

    def on_model(self, module, where):
        torch = self.program.torch
        if self.has_switch():
            return None
        if torch.is_autocast_enabled():
            return self.lacks("already on: %s" % where)
        kinds = {one.dtype for one in module.parameters()}
        if not kinds & {torch.float32}:
            return self.lacks("the parameters are not float32")
        if self.program.is_prepared(module):
            self.applies(self.accelerator, 'Accelerator(mixed_precision="%s")' % self.short_kind())
            self.writes_into(self.accelerator, edits.keywords("Accelerator", mixed_precision='"%s"' % self.short_kind()))
            return None
        kind = self.kind()
        scaler = kind == "float16" and "scaler = torch.amp.GradScaler(): scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()"
        self.applies(where, 'with torch.autocast("cuda", dtype=torch.%s):  # around the forward pass and the loss' % kind, scaler)
        return None

    def has_switch(self):
        """A framework's, which was set."""
        return self.program.has_trainer or self.program.has_lightning

    def on_call(self, module, trains, where):
        torch = self.program.torch
        if not self.is_on or not trains or self.has_switch() or not self.is_found or self.context is not None:
            return
        if self.program.is_prepared(module):
            return
        kind = self.kind()
        if kind == "float16" and self.scaler is None:
            self.scaler = torch.amp.GradScaler()
        self.began = where
        self.context = torch.autocast("cuda", dtype=getattr(torch, kind))
        self.context.__enter__()

    def on_backward(self, loss, where):
        if self.context is not None:
            self.context.__exit__(None, None, None)
            self.context = None
            self.stretches.setdefault((lines.key(self.began), lines.key(where)), (self.began, where))
        return loss if self.scaler is None else self.scaler.scale(loss)

    def edits(self):
        if self.has_switch() or self.written:
            return Change.edits(self)
        if self.scaler is not None or self.context is not None:
            return []  # a scaler has places of its own; and a forward pass without a backward is no stretch
        context = 'torch.autocast("cuda", dtype=torch.%s)' % self.kind()
        return [(edits.until_backward(context), list(places)) for places in self.stretches.values()]

    def make_step(self, original, optimizer, args, kwargs):
        if self.scaler is None:
            return original(optimizer, *args, **kwargs)
        result = self.scaler.step(_Bound(original, optimizer), *args, **kwargs)
        self.scaler.update()
        return result


class Weights(Change):
    name, title = "bf16-weights", "weights in bf16, their gradients and the optimizer's states with them"
    group = "precision"
    price = 90
    lessens = ("parameters", "gradients", "states")
    costs = "less time on tensor cores"
    alters = "precision"
    without = "no model moves to the GPU"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.called = (None, None)  # the outermost module under way, by id, and the program's line
        self.calls, self.is_sure = {}, True  # key of such a line -> (the line, arguments that were float32)

    def on_lightning(self, given, where):
        if str(given.get("precision") or "32-true") not in ("32", "32-true"):
            return self.lacks("precision=%r: %s" % (given["precision"], where))
        if not has_bf16(self.program.torch):
            return self.lacks("the card has no bf16")
        self.applies(where, 'Trainer(precision="bf16-true")')
        self.writes_into(where, edits.keywords("Trainer", precision='"bf16-true"'))
        if self.is_on:
            given["precision"] = "bf16-true"
        return None

    def on_moved(self, module, where):
        torch = self.program.torch
        if self.program.has_lightning:
            return None
        if not any(one.requires_grad for one in module.parameters()):
            return None
        if not any(one.dtype == torch.float32 for one in module.parameters()):
            return self.lacks("the weights are not float32")
        if not has_bf16(torch):
            return self.lacks("the card has no bf16")
        self.applies(where, "model.to(torch.bfloat16) before it moves to the GPU", "inputs that are floating to torch.bfloat16")
        self.writes_into(where, edits.ahead(("cuda", "to"), ".to(torch.bfloat16)", "torch"))
        if self.is_on:
            module.to(torch.bfloat16)
            module.register_forward_pre_hook(self.cast, with_kwargs=True)
        return None

    def on_call(self, module, trains, where):
        self.called = (id(module), where)

    def cast(self, module, args, kwargs):
        given = list(enumerate(args)) + list(kwargs.items())
        wide = [name for name, one in given if self.is_wide(one)]
        self.note(module, wide)
        narrow = {name: one.to(self.program.torch.bfloat16) if name in wide else one for name, one in given}
        return tuple(narrow[at] for at in range(len(args))), {name: narrow[name] for name in kwargs}

    def is_wide(self, one):
        torch = self.program.torch
        return isinstance(one, torch.Tensor) and one.dtype == torch.float32

    def note(self, module, wide):
        """Which arguments the line has to cast: the same in each of its calls, and those of the module that moved."""
        outermost, where = self.called
        if outermost != id(module):
            self.is_sure = self.is_sure and not wide
        elif wide and not getattr(where, "is_own", False):
            self.is_sure = False
        elif self.calls.setdefault(lines.key(where), (where, wide))[1] != wide:
            self.is_sure = False

    def edits(self):
        if not self.is_sure:
            return []
        casts = [(edits.at_call(edits.each(wide, ".to(torch.bfloat16)")), [where]) for where, wide in self.calls.values() if wide]
        return Change.edits(self) + casts


def has_bf16(torch):
    """Before capability 8.0 it is emulated."""
    try:
        return torch.cuda.get_device_capability() >= (8, 0)
    except Exception:
        return True  # no card to be asked


class _Bound(object):
    """An optimizer whose step is the one under way."""

    def __init__(self, step, optimizer):
        self._step, self._optimizer = step, optimizer

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def step(self, *args, **kwargs):
        return self._step(self._optimizer, *args, **kwargs)
