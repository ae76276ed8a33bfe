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

from ashlar_gpu import _failures, _on_oom, _sources, _verdict
from ashlar_gpu._errors import Error
from ashlar_gpu._explain import Size, explain
from ashlar_gpu._failures import Failure, Failures
from ashlar_gpu._sources import Path
from ashlar_gpu.results.explanation import Explanation


class Recording(object):
    """What `record` gives: `snapshot` is the file, `explanation` what it says, `error` what ended the block."""

    def __init__(self, path: Optional[Path], events: int, capacity: Optional[Size]) -> None:
        self.snapshot: Optional[str] = None
        self.error: "Optional[weakref.ref[BaseException]]" = None
        self._path = None if path is None else os.path.abspath(path)
        self._events, self._capacity = events, capacity
        self._folder = tempfile.mkdtemp(prefix="ashlar-record-")
        weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._failures = Failures(self._folder)
        self._failure: Optional[Failure] = None
        self._explanation: Optional[Explanation] = None
        self._torch: Any = None

    def __enter__(self) -> "Recording":
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
        failed = None if error is None else _sources.failure_in(error)
        if failed is not None:
            self._keep_failure(failed)
        if self.snapshot is None and self._torch.cuda.is_initialized():
            path = self._path or os.path.join(self._folder, "history.pickle")
            if _failures.write_snapshot(self._torch, path):
                self.snapshot = path
        if self._failures.has_started_history:
            _failures.stop_history(self._torch)

    def _keep_failure(self, failed: BaseException) -> None:
        ours = self._failures.last
        failure = ours if ours is not None else self._failures.of_error(failed)
        failure.message = str(failed)
        if failure.snapshot is not None and self._path is not None:
            shutil.move(failure.snapshot, self._path)
            failure.snapshot = self._path
        self.snapshot, self._failure = failure.snapshot, failure
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
                raise Error("nothing was recorded: the block did not use CUDA, or has not ended")
            self._explanation = explain(self.snapshot, capacity=self._capacity)
        return self._explanation

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()

    def __str__(self) -> str:
        return str(self.explanation)


def record(path: Optional[Path] = None, *, events: int = _on_oom.EVENTS,
           capacity: Optional[Size] = None) -> Recording:
    """A context manager that records PyTorch's memory history of its block.

    `path` is where the snapshot goes, else it lives as long as what `with` gives; `events` is the length of the history;
    `capacity` is what the explanation takes the device to have, where no failure tells.
    """
    return Recording(path, events, capacity)
