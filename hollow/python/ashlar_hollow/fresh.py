"""--skip-init: initialisers of large tensors in host memory do nothing, so that their pages are never touched.

The values of such tensors are zeros, and the program's host random numbers are not drawn for them.
Thread rule: any thread.
"""

import functools

from .fit.drawn import is_large

FILLERS = ("uniform_", "normal_", "zero_", "fill_", "exponential_", "random_", "log_normal_", "cauchy_", "bernoulli_")


def _skipping(torch, original):
    @functools.wraps(original)
    def fill(tensor, *args, **kwargs):
        return tensor if is_large(torch, tensor) else original(tensor, *args, **kwargs)

    return fill


def _initialisers(init):
    """torch.nn.init's functions that end in _ take the tensor first, by position or as `tensor`."""
    return [name for name in dir(init) if name.endswith("_") and not name.startswith("_")]


def _skipping_initialiser(torch, original):
    @functools.wraps(original)
    def init(*args, **kwargs):
        tensor = args[0] if args else kwargs.get("tensor")
        return tensor if is_large(torch, tensor) else original(*args, **kwargs)

    return init


def install(torch):
    for name in FILLERS:
        setattr(torch.Tensor, name, _skipping(torch, getattr(torch.Tensor, name)))
    for name in _initialisers(torch.nn.init):
        setattr(torch.nn.init, name, _skipping_initialiser(torch, getattr(torch.nn.init, name)))
