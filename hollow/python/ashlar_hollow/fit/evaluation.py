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
        self.kept = []  # of each call before, its tensors, weakly
        self.on_device = None

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
        if trains or self.program.has_trainer:
            return output
        parts = {name: one for name, one in parts_of(torch, output).items() if one.is_cuda}
        self.kept = [call for call in self.kept if alive(call)]
        if "" in parts and self.is_on:
            self.found(output, "", where)
        elif parts and len(self.kept) > 1:  # that of the last call waits for this one to take its name
            self.found(output, next(iter(alive(self.kept[0]))), where)
        if self.is_on and parts:
            self.on_device = None if isinstance(output, torch.Tensor) else parts  # as a variable has it, until the next ones are there
            parts = {name: one.cpu() for name, one in parts.items()}
            output = with_parts(output, parts)
        self.kept.append({name: weakref.ref(one) for name, one in parts.items()})
        if self.is_on:
            self.host_bytes = max(self.host_bytes, sum(one.numel() * one.element_size() for call in self.kept for one in alive(call).values()))
        return output

    def found(self, output, name, where):
        if name == "":
            self.applies(where, "append(output.cpu()) in place of append(output)")
            return self.writes_into(where, edits.behind(".cpu()"))
        part = "output.%s" % name if isinstance(name, str) and type(output) is not dict else "output[%r]" % (name,)
        self.applies(where, "append(%s.cpu()) in place of append(%s)" % (part, part))
        return self.writes(where, edits.nowhere)  # where it is taken out of the output is not known


def parts_of(torch, output):
    """The tensors that an output is, as "", or has, by their names or places."""
    if isinstance(output, torch.Tensor):
        return {"": output}
    named = output.items() if isinstance(output, dict) else enumerate(output) if isinstance(output, (list, tuple)) else ()
    return {name: one for name, one in named if isinstance(one, torch.Tensor)}


def with_parts(output, parts):
    """The same output with these in their places."""
    if "" in parts:
        return parts[""]
    if isinstance(output, dict):
        for name, one in parts.items():
            output[name] = one
        return output
    made = [parts.get(place, one) for place, one in enumerate(output)]
    return type(output)(*made) if hasattr(output, "_fields") else type(output)(made)


def alive(call):
    return {name: one() for name, one in call.items() if one() is not None}
