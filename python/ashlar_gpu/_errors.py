"""The exception that all of this package's are children of."""


class Error(RuntimeError):
    """What could not be done: one line of what, where, and the mend. `ashlar_gpu.Error`."""

    __module__ = "ashlar_gpu"
