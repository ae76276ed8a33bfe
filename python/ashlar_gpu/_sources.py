"""What the functions of this package take as an input, as files that the program reads.

    with files_of(source) as files:      # a path, paths, an exception, a text, a snapshot of PyTorch as a dict
        ran = run(["explain", *files.names])
        files.named(ran.text)            # our own files are "the message" and "the snapshot" in it

Text goes into a file of its own, which is gone afterwards. An Error within the block names it as above.
"""

import contextlib
import os
import pickle
import re
import tempfile
import traceback
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Union

from ashlar_gpu import _cells
from ashlar_gpu._errors import Error, kind_of

Path = Union[str, "os.PathLike[str]"]
Source = Union[Path, BaseException, Mapping[str, Any], Sequence[Union[Path, BaseException]]]

# What messages of frameworks about memory have in common; the program decides.
OUT_OF_MEMORY = re.compile(r"out of memory|out_of_memory|outofmemory|resource_?exhausted|bad_alloc|"
                           r"failed to allocate|cannot allocate|not enough memory|alloc_failed|allocation failed", re.I)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error itself, not its cause, speaks of memory that was not enough."""
    if type(error) is MemoryError:
        return False  # of the host
    return bool(OUT_OF_MEMORY.search(f"{type(error).__name__}: {_said_by(error)}"))


def failure_in(error: BaseException) -> "BaseException | None":
    """The out-of-memory error: this one, or the nearest that it came of."""
    seen: List[int] = []
    at: "BaseException | None" = error
    while at is not None and id(at) not in seen:
        if is_out_of_memory(at):
            return at
        seen.append(id(at))
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return None


def _said_by(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception whose __str__ fails
        return ""


def text_of(error: BaseException) -> str:
    """Its traceback as Python prints it, without notes: what a log of the program would hold."""
    told = traceback.TracebackException(type(error), error, error.__traceback__)
    setattr(told, "__notes__", None)
    shown = _cells.renamed("".join(told.format(chain=False)))
    return shown if shown.strip() else f"{type(error).__name__}: {_said_by(error)}\n"


def _is_text(source: str) -> bool:
    if "\n" in source:
        return True
    return not os.path.exists(source) and bool(OUT_OF_MEMORY.search(source)) and " " in source


class Files(object):
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: List[str] = []
        self._ours: Dict[str, str] = {}  # path -> what a reader calls it
        self._others: Dict[str, BaseException] = {}  # path -> an exception that does not look like one of memory

    def named(self, value: Any) -> Any:
        """The same text or JSON, with what a reader calls our own files in the place of their paths."""
        if isinstance(value, dict):
            return {key: self.named(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.named(one) for one in value]
        if isinstance(value, str) and self.folder in value:
            for path, name in self._ours.items():
                value = value.replace(f"'{path}'", name).replace(path, name)
        return value

    def error_of(self, error: Error) -> Error:
        for path, other in self._others.items():
            if path in str(error):
                said = f"{type(other).__name__}: {_said_by(other)}".splitlines()[0].rstrip(": ")
                return Error(f"this exception is no out-of-memory error: {said}")
        return Error(self.named(str(error)))

    def _new(self, data: bytes, suffix: str, called: str) -> str:
        path = os.path.join(self.folder, f"{len(self.names)}{suffix}")
        with open(path, "wb") as out:
            out.write(data)
        self.names.append(path)
        self._ours[path] = called
        return path

    def add(self, source: Any) -> None:
        if isinstance(source, BaseException):
            failed = failure_in(source)
            failure = failed or source
            snapshot = getattr(failure, "__ashlar_snapshot__", None)  # of on_oom or record
            if snapshot and os.path.exists(snapshot):
                self.names.append(snapshot)
            path = self._new(text_of(failure).encode("utf-8", "replace"), ".log", "the message")
            if failed is None:
                self._others[path] = source
        elif isinstance(source, Mapping):
            self._new(pickle.dumps(dict(source), protocol=4), ".pickle", "the snapshot")
        elif isinstance(source, str) and _is_text(source):
            self._new(source.encode("utf-8", "replace"), ".log", "the message")
        elif isinstance(source, (str, os.PathLike)):
            name = str(source)
            if not os.path.exists(name):
                raise Error(f"there is no file {name}: give a path, an exception, or the text of a message")
            self.names.append(name)
        else:
            raise Error(f"{kind_of(source)} cannot be read: give a path, several paths, an exception, the "
                        "text of a message, or a snapshot of torch.cuda.memory._snapshot()")


@contextlib.contextmanager
def files_of(source: Source) -> Iterator[Files]:
    with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
        files = Files(folder)
        for one in source if isinstance(source, Sequence) and not isinstance(source, (str, bytes)) else [source]:
            files.add(one)
        if not files.names:
            raise Error("there is nothing to read: the list of files is empty")
        try:
            yield files
        except Error as error:
            raise files.error_of(error) from None
