"""Evaluation without graphs, and what it computes on the host."""

import weakref

from . import edits
from .change import Change


class NoGrad(Change):
    name, title = "no-grad-eval", "no graphs in evaluation"
    price = 0
    without = "no module is called in eval mode with gradients on"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.evaluates = False  # such a call was the last one

    def on_call(self, module, trains, where):
        torch = self.program.torch
        if not any(one.requires_grad for one in module.parameters()):
            return None  # such as a loss, which is in training mode whatever the model is
        if module.training or not torch.is_grad_enabled():
            self.evaluates = False
            return None
        self.evaluates = True
        self.applies(where, "with torch.no_grad():  # around the call")
        self.writes(where, edits.within("torch.no_grad()"))
        return torch.no_grad() if self.is_on else None

    def on_backward(self, loss, where):
        if self.evaluates:
            self.refuses("what eval mode computes goes backward: %s" % where)
        return loss


class OutputsToHost(Change):
    name, title = "outputs-to-host", "what is kept of an evaluation is kept on the host"
    price = 5
    costs = "a copy to the host for each batch of an evaluation"
    without = "no output of an evaluation is kept"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.trainer = self.kind = None  # where its arguments are made, and of which class
        self.kept = []  # of the calls before, weakly

    def on_trainer(self, arguments, where):
        if arguments.eval_accumulation_steps is not None:
            return self.lacks("already on: %s" % where)
        self.trainer, self.kind = where, type(arguments).__name__
        if self.is_on:
            arguments.eval_accumulation_steps = 1
        return None

    def on_call(self, module, trains, where):
        if not trains and self.program.has_trainer and self.trainer is not None:
            self.applies(self.trainer, "eval_accumulation_steps=1")
            self.writes_into(self.trainer, edits.keywords(self.kind, eval_accumulation_steps="1"))

    def on_output(self, module, output, trains, where):
        torch = self.program.torch
        if trains or self.program.has_trainer or not isinstance(output, torch.Tensor) or not output.is_cuda:
            return output
        self.kept = [one for one in self.kept if one() is not None]
        if self.is_on or len(self.kept) > 1:  # that of the last call waits for this one to take its name
            self.applies(where, "append(output.cpu()) in place of append(output)")
            self.writes_into(where, edits.behind(".cpu()"))
        if self.is_on:
            output = output.cpu()
        self.kept.append(weakref.ref(output))
        if self.is_on:
            kept = [one for one in (one() for one in self.kept) if one is not None]
            self.host_bytes = max(self.host_bytes, sum(one.numel() * one.element_size() for one in kept))
        return output
