"""record: the memory history of a block of code, and its explanation.

    with ashlar_gpu.record("step.pickle") as run:
        train_one_epoch()
    print(run.explanation)         # of the failure, or of the peak

Where the block runs out of memory, its traceback ends with the explanation (Python 3.11 and later), and
`run.explanation` is that of the failure. The error goes on. Thread rule: one recording at a time in a process.
"""

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import weakref
from types import TracebackType
from typing import Any, Optional, Type

from ashlar_gpu import _cells, _holders, _observer, _on_oom, _sources, _verdict
from ashlar_gpu._errors import Error
from ashlar_gpu._explain import Size, explain
from ashlar_gpu._observer import Failure, Failures
from ashlar_gpu._sources import Path
from ashlar_gpu.results.explanation import Explanation


class Recording(object):
    """What `record` gives: `snapshot` is the file, `explanation` what it says, `error` what ended the block."""

    def __init__(self, path: Optional[Path], events: int, capacity: Optional[Size], redact: bool) -> None:
        self.snapshot: Optional[str] = None
        self.error: "Optional[weakref.ref[BaseException]]" = None
        self._path = None if path is None else os.path.abspath(path)
        self._events, self._capacity = events, capacity
        self._folder = tempfile.mkdtemp(prefix="ashlar-record-")
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._names = _holders.Names(redaction=_holders.Redaction() if redact else None)
        self._failures = Failures(self._folder, _cells.names, self._names)
        self._failure: Optional[Failure] = None
        self._explanation: Optional[Explanation] = None
        self._torch: Any = None

    def __enter__(self) -> "Recording":
        self._check_path()
        self._torch = sys.modules.get("torch")
        if self._torch is None:
            if importlib.util.find_spec("torch") is None:
                raise Error("record needs PyTorch, which is not installed: `ashlar record -- PROGRAM` records programs "
                            "without it")
            self._torch = importlib.import_module("torch")
        if not hasattr(self._torch._C, "_cuda_attach_out_of_memory_observer"):
            raise Error(f"PyTorch {self._torch.__version__} has no CUDA, or is older than 2.0: there is nothing to "
                        "record; `ashlar_gpu.dry_run` needs no GPU, and a build for CUDA")
        self._failures.watch(self._torch, self._events)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Whatever fails here is a line on stderr: the program's own error goes on as it is."""
        try:
            failed = None if error is None else _sources.failure_in(error)
            if failed is not None:
                self._keep_failure(failed)
            if self.snapshot is None and self._torch.cuda.is_initialized():
                self._keep_history()
        except Exception as problem:
            _say(f"not explained: {problem}")
        finally:
            self._stop()

    def _keep_history(self) -> None:
        if not self._failures.has_history:
            _say(f"no memory history is kept: {self._failures.not_kept}")
            return
        path = self._path or os.path.join(self._folder, "history.pickle")
        if _observer.write_snapshot(self._torch, path, _cells.names, _holders.Again(self._names)):
            self.snapshot = path

    def _check_path(self) -> None:
        """Now, and not when the block has run out of memory."""
        if self._path is None:
            return
        folder = os.path.dirname(self._path)
        if not os.path.isdir(folder):
            raise Error(f"record: there is no folder {folder} for the snapshot: make it, or give another path")
        if os.path.isdir(self._path) or not os.access(folder, os.W_OK):
            raise Error(f"record: the snapshot cannot be written to {self._path}: give the path of a file in a "
                        "folder that can be written")

    def _stop(self) -> None:
        try:
            if self._failures.has_started_history:
                _observer.stop_history(self._torch)
        except Exception as problem:
            _say(f"the memory history goes on: {problem}")

    def _move(self, snapshot: str) -> str:
        """To the path that was asked for; where it cannot be had, the snapshot stays where it is."""
        if self._path is None:
            return snapshot
        try:
            shutil.move(snapshot, self._path + ".part")
            os.replace(self._path + ".part", self._path)
            return self._path
        except OSError as problem:
            self._clean.detach()
            _say(f"the snapshot is {snapshot}, and not {self._path}: {problem}")
            return snapshot

    def _keep_failure(self, failed: BaseException) -> None:
        ours = self._failures.last
        failure = ours if ours is not None else self._failures.of_error(failed)
        if failure.snapshot is not None:
            failure.snapshot = self._move(failure.snapshot)
        self.snapshot, self._failure = failure.snapshot, failure
        failure.message = str(failed)
        self._explanation = _verdict.explanation_of(failed, failure)
        if _verdict.note_of(failed) is None:
            _verdict.attach(failed, failure)
            _verdict.told(failed, self._explanation)

    @property
    def failed(self) -> bool:
        """Whether the block ran out of memory, and its error left it."""
        return self._failure is not None

    @property
    def explanation(self) -> Explanation:
        if self._explanation is None:
            if self.snapshot is None:
                raise Error(f"nothing was recorded: {self._failures.not_kept or 'the block did not use CUDA, or has not ended'}")
            self._explanation = explain(self.snapshot, capacity=self._capacity)
        return self._explanation

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()

    def __str__(self) -> str:
        return str(self.explanation)


def _say(line: str) -> None:
    sys.stderr.write(f"ashlar: record: {line}\n")


def record(path: Optional[Path] = None, *, events: int = _on_oom.EVENTS,
           capacity: Optional[Size] = None, redact: bool = False) -> Recording:
    """A context manager that records PyTorch's memory history of its block.

    `path` is where the snapshot goes, else it lives as long as what `with` gives; `events` is the length of the history;
    `capacity` is what the explanation takes the device to have, where no failure tells. `redact`: the snapshot, and what is
    told of it, have `v1` and `file2.py` in the place of the program's names.
    """
    return Recording(path, events, capacity, redact)
