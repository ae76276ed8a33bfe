"""SGLang builds some of its kernels with nvcc when they are first called (load_jit). Where that fails, as on a machine without
CUDA's toolkit, the kernel is one that does nothing, as all kernels do on a hollow device: the tensors that it fills were made before.

A line on stderr says which and why, once. What a kernel would have returned is None.
Thread rule: any thread.
"""

import sys

_said = []


class Idle(object):
    """Of a module of kernels: any function of it does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _nothing(*args, **kwargs):
    return None


def _say(name, error):
    if not _said:
        why = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        sys.stderr.write(
            "ashlar: SGLang could not build its kernel %s (%s): its calls do nothing here, as all kernels, and so it is with "
            "others; with CUDA's toolkit they are built\n" % (name, why[:160])
        )
    _said.append(name)


def watch(loader):
    """After the import of sglang.kernels.jit.utils.compile.loader."""
    load = loader.load_jit

    def load_jit(*args, **kwargs):
        try:
            return load(*args, **kwargs)
        except Exception as error:
            _say(args[0] if args else "?", error)
            return Idle()

    loader.load_jit = load_jit
