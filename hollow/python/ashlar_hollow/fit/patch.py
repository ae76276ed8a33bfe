"""The changes of a run as a diff of the program's own files, which `patch -p0` applies in the folder that it ran in.

    diff, names = of(changes)     # names: of the changes that the diff has whole; of the others the lines are all that is known

The call that was under way is known by its columns from Python 3.11 on. Before it, and in files outside of that folder, there is
no diff. No file is changed.
"""

import difflib
import os

from . import lines
from .source import Source, put


def of(changes):
    files, names, shown = {}, [], []
    for change in changes:
        pieces = _pieces(change, files)
        if pieces and all(_may_put(files[path], found) for path, found in pieces.items()):
            names.append(change.name)
            for path, found in pieces.items():
                files[path].pieces += found
    for path in sorted(files):
        shown.append(_diff(path, files[path]))
    return "".join(shown), names


def _pieces(change, files):
    """By file; None where one of its places cannot be written."""
    out = {}
    for edit, places in change.edits():
        path = _path(places[0])
        spans = [lines.span(place) for place in places]
        if path is None or None in spans or any(_path(place) != path for place in places):
            return None
        if path not in files:
            files[path] = _read(path)
        if files[path] is None:
            return None
        found = edit(files[path], spans)
        if found is None or None in found:
            return None
        out.setdefault(path, []).extend(found)
    return out


def _path(place):
    path = str(place).rpartition(":")[0]
    return None if os.path.isabs(path) or getattr(place, "code", None) is None else path


def _read(path):
    try:
        with open(path, "rb") as file:
            source = Source(file.read())
    except (OSError, ValueError, SyntaxError):
        return None
    source.pieces = []
    return source


def _may_put(source, pieces):
    return put(source.text, source.pieces + pieces) is not None


def _diff(path, source):
    old, new = source.text.decode(), put(source.text, source.pieces).decode()
    return "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), path, path))
