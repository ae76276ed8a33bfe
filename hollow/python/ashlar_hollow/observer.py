"""What is kept of PyTorch's memory in this process: its history, and a snapshot of each failure before what failed lets go.

    failures = Failures(folder)
    failures.watch(torch, events=100000)     # from CUDA's first use on
    failures.last                            # a Failure, or None
    failures.not_kept                        # why there is no history, in a line; None where there is one

PyTorch calls an observer before it throws: what the failing code holds is still there. The history is started where nothing
else has. A program that fails again and again, as one that looks for its batch size, pays for the first two snapshots
and then at most a tenth of its time; the first and the newest stay.

Whatever is asked of PyTorch may fail: `backend:cudaMallocAsync`, and an allocator that a program put in the place of
PyTorch's, have no observer, no history and no snapshot. Then the program goes on, a Failure has no snapshot, and `not_kept` says why.

The file is used twice, and imports nothing of ours: by what `ashlar dry-run` and `ashlar record` put into a program, and,
as `ashlar_gpu._observer`, by the package. Thread rule: any thread. A forked child goes on with files of its own.
"""

import contextlib
import gc
import inspect
import os
import pickle
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

# Of dry-run, through which small operations go, and of the package that this file lies in.
OUR_FRAMES = (os.sep + "ashlar_hollow" + os.sep, os.path.dirname(os.path.abspath(__file__)) + os.sep)
REASON_LENGTH = 160

Names = Callable[[], Dict[str, str]]  # files whose name a reader knows otherwise, such as a notebook's cells


def no_names() -> Dict[str, str]:
    return {}


class Failure(object):
    """A request that found no memory."""

    def __init__(self, number: int, device: Optional[int] = None, requested: Optional[int] = None) -> None:
        self.number, self.device, self.requested = number, device, requested
        self.thread = threading.get_ident()
        self.when = time.time()
        self.snapshot = None  # type: Optional[str]
        self.message = ""
        self.is_shown = False  # its traceback was printed with the verdict, or it was reported


class Failures(object):
    """`holders`: who holds the memory, by name (holders.Names); None: that is not kept."""

    def __init__(self, folder: str, names: Names = no_names, holders: Any = None) -> None:
        self.folder, self.names, self.holders = folder, names, holders
        self.all = []  # type: List[Failure]
        self.began = time.monotonic()
        self.seconds = 0.0  # spent on snapshots
        self.lock = threading.RLock()
        self.has_started_history = False
        self.is_observed = False
        self.has_history = True
        self.not_kept = None  # type: Optional[str]

    @property
    def last(self) -> Optional[Failure]:
        return self.all[-1] if self.all else None

    def watch(self, torch: Any, events: int) -> None:
        if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
            return  # a build without CUDA, or before 2.0: its errors have a message, as all others
        torch.cuda._lazy_call(lambda: self.begin(torch, events))

    def begin(self, torch: Any, events: Optional[int]) -> None:
        """CUDA is up, and nothing has been allocated. No events: the history is the program's own."""
        try:
            collector.load()
            observe(torch, self)
            self.is_observed = True
        except Exception as error:
            self.not_kept = reason(error)
        try:
            self.has_started_history = events is not None and start_history(torch, events)
        except Exception as error:
            self.has_history, self.not_kept = False, reason(error)

    def observe(self, torch: Any, device: Optional[int] = None, requested: Optional[int] = None) -> None:
        with self.lock:
            failure = Failure(len(self.all) + 1, device, requested)
            self.all.append(failure)
            if failure.number > 2 and self.seconds > 5 + (time.monotonic() - self.began) / 10:
                return
            began = time.monotonic()
            failure.snapshot = self._dump(torch, failure.number)
            self.seconds += time.monotonic() - began
            for old in self.all[1:-1]:  # the first stays too: what follows may come of it
                if old.snapshot and os.path.basename(old.snapshot).startswith("oom-%d-" % os.getpid()):
                    remove(old.snapshot)
                    old.snapshot = None

    def _dump(self, torch: Any, number: int) -> Optional[str]:
        path = os.path.join(self.folder, "oom-%d-%d.pickle" % (os.getpid(), number))
        return path if write_snapshot(torch, path, self.names, self.holders, "out_of_memory") else None

    def of_error(self, error: BaseException) -> Failure:
        """The failure that this exception tells of; a new one without a snapshot, where nothing observed it."""
        with self.lock:
            mine = [one for one in self.all if not one.message and one.thread == threading.get_ident()]
            if not mine:  # the backward pass fails in a thread of autograd's and is thrown in the caller's
                mine = [one for one in self.all if not one.message]
            if not mine:
                self.all.append(Failure(len(self.all) + 1))
            failure = mine[-1] if mine else self.all[-1]
            failure.message = text_of(error) or type(error).__name__
            return failure


def observe(torch: Any, failures: Failures) -> None:
    """The observer is never detached: it must keep nothing alive but itself, and let nothing out."""
    there = weakref.ref(failures)

    def observed(device: Any = None, requested: Any = None, *_: Any) -> None:
        kept, held = there(), collector.hold()
        try:
            if kept is not None:
                kept.observe(torch, device, requested)
        except Exception as error:
            sys.stderr.write("ashlar: no snapshot of this failure: %s\n" % reason(error))
        finally:
            collector.release(held)

    never_compile(torch, observed)
    torch._C._cuda_attach_out_of_memory_observer(observed)


def watch_errors(error: Any, call: Callable[[BaseException], None]) -> None:
    """`call` gets each new instance of the class, in the thread that gets it."""
    before = error.__init__

    def __init__(self: BaseException, *args: Any) -> None:
        before(self, *args)
        call(self)

    error.__init__ = __init__


def reason(error: BaseException) -> str:
    """An error's first sentence."""
    line = (text_of(error).strip().splitlines() or [""])[0].split(". ")[0].rstrip(".")
    return line[:REASON_LENGTH] or type(error).__name__


def text_of(error: BaseException) -> str:
    """A program's own class of error may fail at this too."""
    try:
        return str(error)
    except Exception:
        return ""


def named(error: BaseException) -> str:
    """As the last line of a traceback: "ValueError: no such file"."""
    text = text_of(error)
    return type(error).__name__ + (": " + text if text else "")


def start_history(torch: Any, events: int) -> bool:
    """Starts PyTorch's memory history, with Python stacks; False where it was on."""
    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if is_on is not None and is_on():
        return False
    record = getattr(torch.cuda.memory, "_ashlar_record", torch.cuda.memory._record_memory_history)
    try:
        has_stacks = "stacks" in inspect.signature(record).parameters
    except (TypeError, ValueError):
        has_stacks = True
    if has_stacks:  # 2.1 and later; stacks of C++ would be looked up when the process ends, which takes long
        record("all", context="all", stacks="python", max_entries=events)
    else:
        record(True, trace_alloc_max_entries=events, trace_alloc_record_context=True)
    return True


def stop_history(torch: Any) -> None:
    try:
        torch.cuda.memory._record_memory_history(enabled=None)
    except TypeError:
        torch.cuda.memory._record_memory_history(False)


def blocks_now(torch: Any) -> Dict[str, Any]:
    """The snapshot without its history, where this PyTorch can leave it out: that of a long run takes seconds."""
    now = torch.cuda.memory_snapshot
    try:
        can_leave_out = "include_traces" in inspect.signature(now).parameters
    except (TypeError, ValueError):
        can_leave_out = False
    return {"segments": now(include_traces=False) if can_leave_out else now()}


def named_now(torch: Any, holders: Any, seconds: float, redaction: Any = None) -> Dict[str, Any]:
    """PyTorch's snapshot of now with who holds the memory, looked at for so long at the most. What goes wrong is raised."""
    with imports_nothing(torch), not_compiled(torch):
        with holders.Taking(torch, holders.Limits(seconds), redaction) as taking:
            snapshot = torch.cuda.memory._snapshot()  # type: Dict[str, Any]
            taking.add_to(snapshot, "call")
    return snapshot


def write_snapshot(torch: Any, path: str, names: Names = no_names, holders: Any = None, when: str = "",
                   is_at_end: bool = False) -> bool:
    """Writes PyTorch's snapshot, whole or not at all; False, with a line on stderr, where it cannot be had.

    With `holders` it says who holds the memory at the moment `when`; they may hide the names of the program.
    """
    taking = contextlib.nullcontext(lambda _: None) if holders is None else holders.taking(torch, when, is_at_end)
    try:
        with imports_nothing(torch), not_compiled(torch), taking as add_names:
            snapshot = torch.cuda.memory._snapshot()
            add_names(snapshot)
        clean_frames(snapshot, names())
        if holders is not None and holders.redaction is not None:
            holders.redaction.stacks_of(snapshot)
        with open(path + ".part", "wb") as out:
            pickle.dump(snapshot, out, protocol=4)
        os.replace(path + ".part", path)
        return True
    except Exception as error:  # whatever it is, the program's own error comes first
        sys.stderr.write("ashlar: no memory history in %s: %s\n" % (path, reason(error)))
        remove(path + ".part")
        return False


class Collector(object):
    """Python's collector while we work: the program's garbage is collected at the moments of the program.

    A cycle may hold memory of the device, and a collection comes when so many objects were made. What we make and let go
    moves that count, as some objects are kept for use again. It is put right by objects that were made before.
    """

    BALLAST = 4000

    def __init__(self) -> None:
        self.ballast = []  # type: List[object]

    def load(self) -> None:
        if not self.ballast:
            self.ballast = [_Weight() for _ in range(self.BALLAST)]

    def hold(self) -> Any:
        collects = gc.isenabled()
        gc.disable()
        return collects, gc.get_count()[0]

    def release(self, held: Any) -> None:
        more = gc.get_count()[0] - held[1]
        if 0 < more < len(self.ballast):
            del self.ballast[-more:]
        while more < 0:
            self.ballast.append(_Weight())
            more += 1
        if held[0]:
            gc.enable()


class _Weight(object):
    """Counted by the collector, and never kept for use again."""

    __slots__ = ("held",)


collector = Collector()


@contextlib.contextmanager
def imports_nothing(torch: Any) -> Iterator[None]:
    """PyTorch names frames with the help of torch._inductor, where it is there: asking for it would import it.

    That takes seconds, and Python forgets by it that an interrupt ends the program.
    """
    mine, original = threading.get_ident(), vars(torch).get("__getattr__")

    def get(name: str) -> Any:
        if name == "_inductor" and threading.get_ident() == mine:
            raise AttributeError(name)
        return original(name)

    if original is None or "torch._inductor" in sys.modules:
        yield
        return
    torch.__getattr__ = get
    try:
        yield
    finally:
        torch.__getattr__ = original


def _frame_evaluation(torch: Any) -> Any:
    return getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)


def never_compile(torch: Any, *functions: Any) -> None:
    """torch.compile leaves these functions alone, also where a compiled program's frames call them."""
    frames = _frame_evaluation(torch)
    for function in functions:
        if hasattr(frames, "set_code_exec_strategy"):
            skip = frames._FrameAction.SKIP
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
        elif hasattr(frames, "skip_code"):
            frames.skip_code(function.__code__)


@contextlib.contextmanager
def not_compiled(torch: Any) -> Iterator[None]:
    """What runs within is no code that torch.compile would look at."""
    change = getattr(_frame_evaluation(torch), "set_eval_frame", None)
    if change is None:
        yield
        return
    before = change(None)
    try:
        yield
    finally:
        change(before)


def clean_frames(snapshot: Any, names: Dict[str, str]) -> None:
    """Stacks are the program's: without our frames, and with the names that a reader knows."""
    holders = [event for trace in snapshot.get("device_traces", ()) for event in trace]
    for segment in snapshot.get("segments", ()):
        holders.append(segment)
        holders.extend(segment.get("blocks", ()))
    for holder in holders:
        frames = holder.get("frames")
        if frames and any(is_ours(frame) or frame["filename"] in names for frame in frames):
            holder["frames"] = [dict(frame, filename=names.get(frame["filename"], frame["filename"]))
                                for frame in frames if not is_ours(frame)]


def is_ours(frame: Dict[str, Any]) -> bool:
    return any(ours in frame["filename"] for ours in OUR_FRAMES)


def remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
