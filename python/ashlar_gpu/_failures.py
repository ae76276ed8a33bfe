"""The out-of-memory errors of PyTorch in this process: a snapshot of each, written before what failed lets go.

    failures = Failures(folder)
    failures.watch(torch, events=100000)     # from CUDA's first use on
    failures.last                            # a Failure, or None

PyTorch calls an observer before it throws: what the failing code holds is still there. The memory history is started
where nothing else has. A program that fails again and again, as one that looks for its batch size, pays for the first
two snapshots and then at most a tenth of its time; the first and the newest stay. Where the allocator is not PyTorch's own there
is no observer and no history: a Failure then has no snapshot, and the message is what there is.

Thread rule: any thread. A forked child goes on with files of its own.
"""

import dataclasses
import inspect
import os
import pickle
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Optional

from ashlar_gpu import _cells

# Of dry-run, through which small operations go, and of this package.
OUR_FRAMES = (f"{os.sep}ashlar_hollow{os.sep}", os.path.dirname(os.path.abspath(__file__)) + os.sep)


@dataclasses.dataclass
class Failure:
    number: int
    thread: int
    snapshot: Optional[str] = None
    message: str = ""
    is_shown: bool = False  # its traceback was printed with the verdict, or it was reported


class Failures(object):
    def __init__(self, folder: str, on_error: Optional[Callable[[BaseException, Failure], None]] = None) -> None:
        self.folder = folder
        self.on_error = on_error
        self.all: List[Failure] = []
        self.began = time.monotonic()
        self.seconds = 0.0  # spent on snapshots
        self.lock = threading.RLock()
        self.has_started_history = False

    @property
    def last(self) -> Optional[Failure]:
        return self.all[-1] if self.all else None

    def watch(self, torch: Any, events: int) -> None:
        if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
            return  # a build without CUDA, or before 2.0: its errors have a message, as all others
        torch.cuda._lazy_call(lambda: self._begin(torch, events))

    def _begin(self, torch: Any, events: int) -> None:
        try:
            # The observer is never detached: it must keep nothing alive but itself.
            this: "weakref.ref[Any]" = weakref.ref(self)
            torch._C._cuda_attach_out_of_memory_observer(lambda *figures: _observed(this, torch, *figures))
            self.has_started_history = start_history(torch, events)
        except RuntimeError:
            pass  # not PyTorch's own allocator

    def observe(self, torch: Any) -> None:
        with self.lock:
            failure = Failure(len(self.all) + 1, threading.get_ident())
            self.all.append(failure)
            if failure.number > 2 and self.seconds > 5 + (time.monotonic() - self.began) / 10:
                return
            began = time.monotonic()
            failure.snapshot = self._dump(torch, failure.number)
            self.seconds += time.monotonic() - began
            for old in self.all[1:-1]:  # the first stays too: what follows may come of it
                if old.snapshot and os.path.basename(old.snapshot).startswith(f"oom-{os.getpid()}-"):
                    _remove(old.snapshot)
                    old.snapshot = None

    def _dump(self, torch: Any, number: int) -> Optional[str]:
        path = os.path.join(self.folder, f"oom-{os.getpid()}-{number}.pickle")
        return path if write_snapshot(torch, path) else None

    def of_error(self, error: BaseException) -> Failure:
        """The failure that this exception tells of; a new one without a snapshot, where nothing observed it."""
        with self.lock:
            mine = [one for one in self.all if not one.message and one.thread == threading.get_ident()]
            if not mine:  # the backward pass fails in a thread of autograd's and is thrown in the caller's
                mine = [one for one in self.all if not one.message]
            if not mine:
                self.all.append(Failure(len(self.all) + 1, threading.get_ident()))
            failure = mine[-1] if mine else self.all[-1]
            failure.message = str(error) or type(error).__name__
            return failure


def _observed(failures: "weakref.ref[Any]", torch: Any, *_: Any) -> None:
    there = failures()
    if there is not None:
        there.observe(torch)


def start_history(torch: Any, events: int) -> bool:
    """Starts PyTorch's memory history, with Python stacks; False where it was on, or there is none."""
    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if is_on is not None and is_on():
        return False
    record = torch.cuda.memory._record_memory_history
    try:
        has_stacks = "stacks" in inspect.signature(record).parameters
    except (TypeError, ValueError):
        has_stacks = True
    if has_stacks:  # 2.1 and later
        record("all", context="all", stacks="python", max_entries=events)
    else:
        record(True, trace_alloc_max_entries=events, trace_alloc_record_context=True)
    return True


def stop_history(torch: Any) -> None:
    try:
        torch.cuda.memory._record_memory_history(enabled=None)
    except TypeError:
        torch.cuda.memory._record_memory_history(False)


def write_snapshot(torch: Any, path: str) -> bool:
    """Writes PyTorch's snapshot, whole or not at all; False, with a line on stderr, where it cannot be had."""
    try:
        snapshot = torch.cuda.memory._snapshot()
        _clean_frames(snapshot)
        with open(path + ".part", "wb") as out:
            pickle.dump(snapshot, out, protocol=4)
        os.replace(path + ".part", path)
        return True
    except Exception as error:  # whatever it is, the program's own error comes first
        sys.stderr.write(f"ashlar: no memory history in {path}: {error}\n")
        _remove(path + ".part")
        return False


def _clean_frames(snapshot: Any) -> None:
    """Stacks are the program's, and a notebook's cells have their numbers."""
    cells = _cells.names()
    holders = [event for trace in snapshot.get("device_traces", ()) for event in trace]
    for segment in snapshot.get("segments", ()):
        holders.append(segment)
        holders.extend(segment.get("blocks", ()))
    for holder in holders:
        frames = holder.get("frames")
        if frames and any(_is_ours(frame) or frame["filename"] in cells for frame in frames):
            holder["frames"] = [{**frame, "filename": cells.get(frame["filename"], frame["filename"])}
                                for frame in frames if not _is_ours(frame)]


def _is_ours(frame: Dict[str, Any]) -> bool:
    return any(ours in frame["filename"] for ours in OUR_FRAMES)


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
