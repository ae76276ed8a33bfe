"""Optimizers: their steps' temporaries, and others that keep less of each parameter."""

import inspect

from .change import Change


class Optimizers(Change):
    group = "optimizer"
    without = "no optimizer of torch.optim is made"
    argument = ""  # that the class must take

    def on_optimizer(self, optimizer, kind, given, where):
        taken = inspect.signature(kind.__init__).parameters
        name = kind.__name__
        if given.get("fused"):
            return self.lacks("fused=True: %s" % where)
        if self.argument and self.argument not in taken:
            return self.lacks("%s has no %s" % (name, self.argument))
        return self.change(optimizer, kind, given, where)

    def change(self, optimizer, kind, given, where):
        raise NotImplementedError


class Fused(Optimizers):
    name, title = "fused-optimizer", "the optimizer's fused step, which has no temporaries"
    argument = "fused"
    price = 1

    def change(self, optimizer, kind, given, where):
        if given.get("foreach"):
            return self.lacks("foreach=True is given: %s" % where)
        self.applies(where, "%s(..., fused=True)" % kind.__name__)
        if self.is_on:
            given["fused"] = True
        return None


class NoForeach(Optimizers):
    name, title = "no-foreach", "the optimizer's step parameter by parameter"
    argument = "foreach"
    price = 15
    costs = "more time in the optimizer's step"

    def change(self, optimizer, kind, given, where):
        if given.get("foreach") is False:
            return self.lacks("already on: %s" % where)
        self.applies(where, "%s(..., foreach=False)" % kind.__name__)
        if self.is_on:
            given["foreach"] = False
        return None


class Other(Optimizers):
    alters = "optimizer"
    costs = "another optimizer: other results"
    kept = ()  # arguments that both have

    def change(self, optimizer, kind, given, where):
        other = getattr(self.program.torch.optim, self.other, None)
        if other is None or kind.__name__ not in ("Adam", "AdamW"):
            return self.lacks("no Adam" if other is not None else "this PyTorch has no %s" % self.other)
        self.applies(where, "torch.optim.%s(...) in place of %s" % (self.other, kind.__name__))
        if self.is_on:
            optimizer.__class__ = other
            for name in [one for one in given if one not in self.kept]:
                del given[name]
        return None


class Adafactor(Other):
    name, title, price = "adafactor", "Adafactor in place of Adam", 70
    other = "Adafactor"
    kept = ("params", "lr", "weight_decay", "maximize")


class Sgd(Other):
    name, title, price = "sgd", "SGD without momentum in place of Adam", 80
    other = "SGD"
    kept = ("params", "lr", "weight_decay", "maximize")
