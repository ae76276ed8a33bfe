"""Optimizers: their steps' temporaries, states that wait on the host, and others that keep less of each parameter."""

import importlib
import importlib.util
import inspect

from . import edits
from .change import Change

WITHOUT = "no optimizer of torch.optim is made"
ADAMS = ("Adam", "AdamW")

class Switched(Change):
    """The optimizer, or the one in its place, with another value of an argument. What transformers' Trainer makes is chosen where its
    arguments are."""

    group = "step"
    without = WITHOUT
    argument, value = "", None
    trainer = (None, None, None)  # where its arguments are made, of which class, and the optimizer that they name

    def on_trainer(self, arguments, where):
        self.trainer = (where, type(arguments).__name__, name_of(arguments))

    def on_optimizer(self, optimizer, kind, given, where):
        made = next((one.kind_of(kind.__name__) for one in self.program.changes if isinstance(one, Other) and one.replaces(kind)), kind)
        if self.argument not in inspect.signature(made.__init__).parameters:
            return self.lacks("%s has no %s" % (made.__name__, self.argument))
        why = "fused=True" if given.get("fused") else self.why_kept(given)
        if why is not None:
            return self.lacks("%s: %s" % (why, where))
        if self.program.has_trainer and not getattr(where, "is_own", False):
            if not self.by_trainer(kind, where):
                return None
        else:
            self.applies(where, "%s(..., %s=%s)" % (kind.__name__, self.argument, self.value))
            self.writes_into(where, edits.keywords(kind.__name__, **{self.argument: str(self.value)}))
        if self.is_on:
            given[self.argument] = self.value
        return None

    def why_kept(self, given):
        """Why its value stays, in a few words, or None."""
        raise NotImplementedError

    def by_trainer(self, kind, where):
        """Says what its user writes; whether there is something."""
        raise NotImplementedError


class Fused(Switched):
    name, title = "fused-optimizer", "the optimizer's fused step, which has no temporaries"
    argument, value = "fused", True
    price = 1

    def why_kept(self, given):
        return "foreach=True is given" if given.get("foreach") else None

    def by_trainer(self, kind, where):
        place, name, optimizer = self.trainer
        if optimizer != "adamw_torch" or kind.__name__ != "AdamW":
            self.lacks("optim=%r has no fused one: %s" % (optimizer, place))
            return False
        self.applies(place, '%s(optim="adamw_torch_fused")' % name)
        self.writes_into(place, edits.keywords(name, optim='"adamw_torch_fused"'))
        return True


class NoForeach(Switched):
    name, title = "no-foreach", "the optimizer's step parameter by parameter"
    argument, value = "foreach", False
    price = 15
    costs = "more time in the optimizer's step"

    def why_kept(self, given):
        return "already on" if given.get("foreach") is False else None

    def by_trainer(self, kind, where):
        self.applies(where, "Trainer(..., optimizers=(torch.optim.%s(model.parameters(), ..., foreach=False), None))" % kind.__name__)
        self.writes(where, edits.nowhere)  # its other arguments are those of TrainingArguments
        return True


def name_of(arguments):
    """Of transformers' optimizer."""
    return str(getattr(arguments.optim, "value", arguments.optim))


# What runs, and what the user writes.
MOVE = """def move(optimizer, to_host):
    for parameter, states in optimizer.state.items():
        for name, one in states.items():
            if torch.is_tensor(one) and one.dim() > 0:
                states[name] = one.to("cpu" if to_host else parameter.device)
"""


class StatesToHost(Change):
    name, title = "states-to-host", "the optimizer's states wait on the host between its steps"
    price = 45
    costs = "more time in each step: the states come from the host, and go back"
    without = "no optimizer keeps states on the GPU"
    move = None

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.on_host = {}  # bytes of each optimizer's states, by id

    def on_before_step(self, optimizer):
        if self.is_on:
            self.moved(optimizer, False)

    def on_step(self, optimizer, where):
        torch = self.program.torch
        states = [one for states in optimizer.state.values() for one in states.values()]
        if not any(torch.is_tensor(one) and one.dim() > 0 and one.device.type != "cpu" for one in states):
            return
        self.applies(where, "move(optimizer, False) before optimizer.step(), move(optimizer, True) after it, with", *MOVE.splitlines())
        self.writes(where, edits.beside(("step",), "move(%s, False)", "move(%s, True)", "move", MOVE))
        if self.is_on:
            self.moved(optimizer, True)

    def moved(self, optimizer, to_host):
        if self.move is None:
            names = {"torch": self.program.torch}
            exec(MOVE, names)
            self.move = names["move"]
        self.move(optimizer, to_host)
        if to_host:
            self.on_host[id(optimizer)] = self.size_of(optimizer)
            self.host_bytes = max(self.host_bytes, sum(self.on_host.values()))

    def size_of(self, optimizer):
        states = [one for states in optimizer.state.values() for one in states.values()]
        return sum(one.numel() * one.element_size() for one in states if self.program.torch.is_tensor(one) and one.dim() > 0)


class Other(Change):
    group = "optimizer"
    without = WITHOUT
    alters = "optimizer"
    lessens = ("states",)
    costs = "another optimizer: other results"
    kept = ("params", "lr", "weight_decay", "maximize")  # arguments that both have
    by_place = 2  # the first of them, which both take by place as well
    library = "torch.optim"
    trainers = ""  # its name among transformers' optimizers

    def on_trainer(self, arguments, where):
        optimizer = name_of(arguments)
        if not optimizer.startswith("adamw_torch"):
            return self.lacks("optim=%r: %s" % (optimizer, where))
        if self.kind_of("AdamW") is None:
            return self.lacks(self.without_kind)
        self.applies(where, 'optim="%s"' % self.trainers)
        self.writes_into(where, edits.keywords(type(arguments).__name__, optim='"%s"' % self.trainers))
        if self.is_on:
            arguments.optim = self.trainers
        return None

    def kind_of(self, name):
        """The class in the place of that one; None where it is not installed."""
        return getattr(self.program.torch.optim, self.other, None)

    @property
    def without_kind(self):
        return "this PyTorch has no %s" % self.other

    def replaces(self, kind):
        """It is on, and is made in the place of that class."""
        return self.is_on and not self.program.has_trainer and kind.__name__ in ADAMS and self.kind_of(kind.__name__) is not None

    def on_optimizer(self, optimizer, kind, given, where):
        if self.program.has_trainer:
            return None
        if kind.__name__ not in ADAMS:
            return self.lacks("no Adam")
        other = self.kind_of(kind.__name__)
        if other is None:
            return self.lacks(self.without_kind)
        new = "%s.%s" % (self.library, other.__name__)
        self.applies(where, "%s(...) in place of %s" % (new, kind.__name__))
        self.writes_into(where, edits.renamed(kind.__name__, new, self.library.partition(".")[0], self.kept, self.by_place))
        if self.is_on:
            optimizer.__class__ = other
            switches = {"fused", "foreach"} & set(inspect.signature(other.__init__).parameters)
            for name in [one for one in given if one not in self.kept and one not in switches]:
                del given[name]
        return None


class Adafactor(Other):
    name, title, price = "adafactor", "Adafactor in place of Adam", 70
    other, trainers = "Adafactor", "adafactor"


class Sgd(Other):
    name, title, price = "sgd", "SGD without momentum in place of Adam", 80
    other, trainers = "SGD", "sgd"


class EightBit(Other):
    name, title, price = "adam-8bit", "Adam with states of 8 bits", 65
    costs = "less time in the optimizer's step; results are rounded"
    kept = ("params", "lr", "betas", "eps", "weight_decay")
    by_place = 5
    library, trainers = "bitsandbytes.optim", "adamw_8bit"
    without_kind = "bitsandbytes is not installed"

    def kind_of(self, name):
        if importlib.util.find_spec("bitsandbytes") is None:
            return None
        if not self.is_on:
            return type(name + "8bit", (object,), {})  # its import is for the run that takes it
        return getattr(importlib.import_module("bitsandbytes.optim"), name + "8bit")
