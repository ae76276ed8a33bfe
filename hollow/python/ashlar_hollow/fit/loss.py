"""The cross-entropy of many classes, in parts of its rows: the logits and their gradient alone are there in whole."""

from . import edits
from .change import Change

LEAST_CLASSES = 4096

# What runs, and what the user writes.
SOURCE = '''class ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(context, logits, targets, ignored=-100, parts=8):
        context.grad, total = torch.empty_like(logits), 0.0
        for rows, kinds, into in zip(logits.chunk(parts), targets.chunk(parts), context.grad.chunk(parts)):
            with torch.enable_grad():
                rows = rows.detach().requires_grad_()
                loss = cross_entropy(rows, kinds, ignore_index=ignored, reduction="sum")
            into.copy_(torch.autograd.grad(loss, rows)[0])
            total = total + loss.detach()
        return total
    @staticmethod
    def backward(context, grad):
        return context.__dict__.pop("grad").mul_(grad), None, None, None
'''


# In a file, where a call goes to it.
WRITTEN = SOURCE.replace(" cross_entropy(", " torch.nn.functional.cross_entropy(") + """

def chunked_loss(logits, targets):
    return ChunkedLoss.apply(logits, targets) / (targets != -100).sum()
"""


class Chunked(Change):
    name, title = "chunked-loss", "the cross-entropy of many classes in 8 parts"
    price = 6
    costs = "a function of its own for the loss"
    without = "no cross-entropy of many classes"
    function = None

    def on_loss(self, original, where, logits, targets, weight=None, size_average=None, ignore_index=-100, reduce=None,
                reduction="mean", label_smoothing=0.0):
        """The loss in the place of cross_entropy's, or None."""
        torch = self.program.torch
        if not isinstance(logits, torch.Tensor) or logits.dim() != 2 or targets.dim() != 1 or not logits.requires_grad:
            return None
        if logits.shape[1] < LEAST_CLASSES:
            return self.lacks("the loss is of %d classes" % logits.shape[1])
        if weight is not None or size_average is not None or reduce is not None or label_smoothing or reduction not in ("mean", "sum"):
            return self.lacks("the loss is weighted, smoothed or not reduced")
        by = "" if reduction == "sum" else " / (targets != %d).sum()" % ignore_index
        self.applies(where, "loss = ChunkedLoss.apply(logits, targets)%s  # in place of cross_entropy, with" % by, *SOURCE.splitlines())
        if reduction == "mean" and ignore_index == -100:
            self.writes(where, edits.calls_instead("cross_entropy", "chunked_loss", WRITTEN))
        if not self.is_on:
            return None
        if self.function is None:
            names = {"torch": torch, "cross_entropy": original}
            exec(SOURCE, names)
            self.function = names["ChunkedLoss"]
        total = self.function.apply(logits, targets, ignore_index)
        return total if reduction == "sum" else total / (targets != ignore_index).sum()
