"""The one exception of this package."""


class Error(RuntimeError):
    """What could not be done: one line of what, where, and the mend. `ashlar_gpu.Error`."""

    __module__ = "ashlar_gpu"
