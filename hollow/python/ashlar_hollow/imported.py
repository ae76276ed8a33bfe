"""What a program has imported when its first module is called: a process that has imported as much can be forked for each run.

    watch(after)              # at the interpreter's start
    look()                    # at the first call of a module
    told()                    # {"modules": [...], "using": [...], "seconds": 4.1, "why_not": "", "parent": 4711}; None: none was called

`using` are the modules whose imports were under way when a device was first used. Such an import can be made once in a process, and is
the fork's own. That of a library that asks for the capability alone is not among them: it is told.

Modules are named in the order in which their imports began, those of libraries alone: what lies beside the program is the program's.
Thread rule: any thread.
"""

import functools
import os
import sys
import time

from . import settings

LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_seen = {"why_not": "", "using": []}


def watch(after):
    environment = dict(os.environ)

    def installed(torch):
        if dict(os.environ) != environment:
            _seen["why_not"] = "the program sets its environment before it imports torch"
        _await_device(torch.cuda)

    after("torch", installed)


def _await_device(cuda):
    lazy_init = cuda._lazy_init

    def began(*args, **kwargs):
        cuda._lazy_init = lazy_init
        if "modules" not in _seen and not _asks_capability(sys._getframe(1), cuda):
            _seen["using"] = [name for name, module in list(sys.modules.items()) if _is_under_way(module)]
        return lazy_init(*args, **kwargs)

    cuda._lazy_init = began


def _asks_capability(frame, cuda):
    """Whether a frame is get_device_capability()'s, and that by get_device_properties() alone."""
    asks = getattr(cuda.get_device_capability, "__code__", None), getattr(cuda.get_device_properties, "__code__", None)
    return frame.f_code is asks[1] and frame.f_back is not None and frame.f_back.f_code is asks[0]


def _is_under_way(module):
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def look():
    if "modules" not in _seen:
        using = set(_seen["using"])
        modules = [name for name, module in list(sys.modules.items()) if is_of_library(name, module)]
        _seen["modules"] = [name for name in modules if using.isdisjoint([name] + parents(name))]
        _seen["seconds"] = time.monotonic() - settings.BEGAN


def parents(name):
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def is_of_library(name, module):
    """Whether an import of that name, in another process, makes the same module."""
    spec = getattr(module, "__spec__", None)
    if name == "__main__" or name.split(".")[0] in ("ashlar_hollow", "sitecustomize", "usercustomize"):
        return False
    if spec is None or spec.name != name or not spec.has_location or not spec.origin:
        return False
    return any(spec.origin.startswith(folder) for folder in _folders())


@functools.lru_cache(None)
def _folders():
    import site
    import sysconfig

    places = [sysconfig.get_paths().get(key) for key in LIBRARIES] + site.getsitepackages() + [site.getusersitepackages()]
    return tuple({os.path.join(os.path.abspath(place), "") for place in places if place})


def told():
    if "modules" not in _seen:
        return None
    return dict(_seen, parent=os.getppid())
