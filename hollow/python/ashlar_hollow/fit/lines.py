"""The line of the program under way: "train.py:88", the nearest that is of no library; and where in it the call lies.

Nothing of PyTorch, of Python's own library, of what pip installs, or of ours is the program's.
"""

import functools
import itertools
import os
import sys
import sysconfig

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LIBRARIES = tuple(
    os.path.realpath(path) + os.sep for path in {sysconfig.get_paths().get(key) for key in ("stdlib", "platstdlib")} if path
)
INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep, os.sep + "ashlar_hollow" + os.sep)


@functools.lru_cache(maxsize=None)
def is_ours(filename):
    return os.path.abspath(filename).startswith(HERE)


def is_program(filename):
    if filename.startswith("<") or any(part in filename for part in INSTALLED):
        return False
    if is_ours(filename):
        return False
    return not os.path.realpath(filename).startswith(LIBRARIES)


_known = {}


class Place(str):
    """The line, with the instruction that is under way there."""

    code = at = None
    is_own = False  # what it calls is what was asked for; else a library lies between


def key(place):
    """Of the call there, among others of the line."""
    return place, getattr(place, "at", None)


def span(place):
    """(line, column, end line, end column) of the call; columns count bytes, from 0. None before Python 3.11."""
    positions = getattr(getattr(place, "code", None), "co_positions", None)
    if positions is None:
        return None
    line, end_line, column, end_column = next(itertools.islice(positions(), place.at // 2, None), (None,) * 4)
    return None if end_column is None else (line, column, end_line, end_column)


def frame():
    """The nearest that is the program's; None where none is."""
    return _nearest()[0]


def _nearest():
    """(that frame, the one that it called)."""
    frame, called = sys._getframe(1), None
    while frame is not None:
        name = frame.f_code.co_filename
        if name not in _known:
            try:
                _known[name] = is_program(name)
            except (OSError, ValueError):
                _known[name] = False
        if _known[name]:
            return frame, called
        frame, called = frame.f_back, frame
    return None, None


def where(owner=None):
    """None where no frame is the program's. `owner`: the object whose method it calls, which a library's class may have overridden."""
    nearest, called = _nearest()
    if nearest is None:
        return None
    place = Place("%s:%d" % (_shown(nearest.f_code.co_filename), nearest.f_lineno))
    place.code, place.at = nearest.f_code, nearest.f_lasti
    place.is_own = called is not None and (is_ours(called.f_code.co_filename) or owner is not None and _first(called) is owner)
    return place


def _first(frame):
    """What a function was given first."""
    name = next(iter(frame.f_code.co_varnames), None)
    value = frame.f_locals.get(name)
    return value[0] if isinstance(value, tuple) and value else value


def _shown(filename):
    try:
        path = os.path.relpath(filename)
    except (OSError, ValueError):
        return filename
    return filename if path.startswith(os.pardir) else path
