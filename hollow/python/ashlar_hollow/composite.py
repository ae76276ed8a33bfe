"""Operations that PyTorch puts together otherwise while any dispatch mode is on: they run with ours off.

at::linear adds its bias in place, but out of place where isTensorSubclassLike says that a mode is on
(aten/src/ATen/native/Linear.cpp, aten/src/ATen/TensorSubclassLikeUtils.h): a buffer
more, which the program does not have.
Thread rule: any thread.
"""

from . import observer, unseen


class Whole(object):
    """A composed operation, as values.Values takes one."""

    def __init__(self, torch, operation):
        self.operation = operation
        self._schema = operation._schema
        self.tags = ()

    def _op(self, *args):
        return self.operation.decompose(*args)


def _adds_bias_apart(tensor, bias):
    """Otherwise the bias goes into the product, mode or not."""
    return bias is not None and tensor.dim() != 2 and not tensor.is_contiguous()


def install(torch, stack, values):
    """Keeps the registration while the returned object lives."""
    operation = torch.ops.aten.linear.default
    whole = Whole(torch, operation)

    def linear(tensor, weight, bias=None):
        if not _adds_bias_apart(tensor, bias) or type(tensor) is not torch.Tensor or not stack.take():
            return operation.decompose(tensor, weight, bias)
        try:
            made = operation.decompose(tensor, weight, bias)
            values.made_apart(whole, (tensor, weight, bias), made)
            return made
        finally:
            stack.put()

    observer.never_compile(torch, linear)
    registered = torch.library.Library("aten", "IMPL")
    registered.impl("linear", unseen.unseen(linear), "AutogradCUDA")
    return registered
