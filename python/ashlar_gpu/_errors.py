"""The exception that all of this package's are children of, and words for its lines."""

import os
import traceback
from typing import List

from ashlar_gpu import _cells

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(RuntimeError):
    """What could not be done: one line of what, where, and how to fix it. `ashlar_gpu.Error`."""

    __module__ = "ashlar_gpu"

    def _render_traceback_(self) -> List[str]:
        """What IPython shows of it: the lines of the reader that led here, none of IPython's and none of ours."""
        lines: List[str] = []
        for frame in traceback.extract_tb(self.__traceback__):
            if frame.filename.startswith(FOLDER):
                break
            if f"{os.sep}IPython{os.sep}" in frame.filename:
                lines.clear()
            else:
                lines.append(f"  {_cells.names().get(frame.filename, frame.filename)}:{frame.lineno}  {frame.line}")
        return [*lines, f"Error: {self}"]


def kind_of(value: object) -> str:
    """What it is, with its article: "an int", "a Path", "None"."""
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
