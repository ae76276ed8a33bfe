"""The line of the program under way: "train.py:88", the nearest that is of no library.

Nothing of PyTorch, of Python's own library, of what pip installs, or of ours is the program's.
"""

import os
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARIES = tuple(
    os.path.realpath(path) + os.sep for path in {sysconfig.get_paths().get(key) for key in ("stdlib", "platstdlib")} if path
)
INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep, os.sep + "ashlar_hollow" + os.sep)


def is_program(filename):
    if filename.startswith(("<", HERE)) or any(part in filename for part in INSTALLED):
        return False
    return not os.path.realpath(filename).startswith(LIBRARIES)


_known = {}


def where():
    """None where no frame is the program's."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in _known:
            try:
                _known[name] = is_program(name)
            except (OSError, ValueError):
                _known[name] = False
        if _known[name]:
            return "%s:%d" % (_shown(name), frame.f_lineno)
        frame = frame.f_back
    return None


def _shown(filename):
    try:
        path = os.path.relpath(filename)
    except (OSError, ValueError):
        return filename
    return filename if path.startswith(os.pardir) else path
