"""What a program has imported when its first module is called: a process that has imported as much can be forked for each run.

    watch(after)              # at the interpreter's start
    look()                    # at the first call of a module
    told()                    # {"modules": [...], "seconds": 4.1, "why_not": "", "parent": 4711}; None: none was called

Modules are named in the order in which their imports began, those of libraries alone: what lies beside the program is the program's.
Thread rule: any thread.
"""

import functools
import os
import sys
import time

from . import settings

LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_seen = {"why_not": ""}


def watch(after):
    environment = dict(os.environ)

    def installed(torch):
        if dict(os.environ) != environment:
            _seen["why_not"] = "the program sets its environment before it imports torch"

    after("torch", installed)


def look():
    if "modules" not in _seen:
        _seen["modules"] = [name for name, module in list(sys.modules.items()) if is_of_library(name, module)]
        _seen["seconds"] = time.monotonic() - settings.BEGAN


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
