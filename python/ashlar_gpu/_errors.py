"""The exception that all of this package's are children of, and words for its lines."""


class Error(RuntimeError):
    """What could not be done: one line of what, where, and how to fix it. `ashlar_gpu.Error`."""

    __module__ = "ashlar_gpu"


def kind_of(value: object) -> str:
    """What it is, with its article: "an int", "a Path", "None"."""
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
