"""Evaluation without graphs."""

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
        return torch.no_grad() if self.is_on else None

    def on_backward(self, loss, where):
        if self.evaluates:
            self.refuses("what eval mode computes goes backward: %s" % where)
        return loss
