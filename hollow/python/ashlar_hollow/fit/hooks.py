"""A call in the place of a function or a method.

    hooks.put(torch.nn.Module, "train", lambda original, module, mode=True: original(module, mode))
"""

import functools


def put(owner, name, call):
    """call(original, ...) in the place of owner.name."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def hooked(*args, **kwargs):
        return call(original, *args, **kwargs)

    setattr(owner, name, hooked)
