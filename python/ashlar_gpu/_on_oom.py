"""on_oom: the traceback of an out-of-memory error ends with its explanation.

    import ashlar_gpu
    ashlar_gpu.on_oom()

From then on PyTorch's memory history is kept, and a snapshot is written when a request fails, before the program lets
go of anything. Where the error ends a thread or the program, or is logged or printed with its traceback, the explanation
follows. An error that the program caught and never showed is summed up when the program ends. Errors of other frameworks
and allocators are explained by their message.

Thread rule: any thread; again is nothing to do. Forked children are included; other processes call it themselves, as the
ranks of torchrun do.
"""

import atexit
import os
import shutil
import sys
import tempfile
import threading
from typing import Any, List, Optional

from ashlar_gpu import _cells, _holders, _imports, _observer, _sources, _verdict
from ashlar_gpu._errors import Error
from ashlar_gpu._observer import Failure, Failures
from ashlar_gpu._sources import Path

EVENTS = 100000  # of PyTorch's history: some ten to a hundred steps

_installed: "Optional[_Hooks]" = None


def on_oom(*, keep: Optional[Path] = None, events: int = EVENTS, brief: Optional[bool] = None,
           names: float = 10.0, redact: bool = False) -> None:
    """Makes tracebacks of out-of-memory errors end with their explanation.

    `keep` is a folder where the snapshots stay (oom-PID-N.pickle), else they go when the program ends. `events` is the
    length of PyTorch's history. `brief` leaves out all but the verdict, the accounting, the causes and the line to
    paste; None: in jobs of several ranks. `names` bounds the seconds of a look at who holds the memory, by Python's
    names; 0: none is taken. `redact`: the snapshots, and what is told of them, have `v1` and `file2.py` in the place of
    the program's names. Call it before the model is made, so that the history has it.
    """
    global _installed
    if _installed is None:
        _installed = _Hooks(_folder(keep), keep is None, events, brief, names, redact)


def _folder(keep: Optional[Path]) -> str:
    if keep is None:
        return tempfile.mkdtemp(prefix="ashlar-oom-")
    try:
        os.makedirs(keep, exist_ok=True)
    except OSError as error:
        raise Error(f"on_oom: no folder {os.fspath(keep)} for the snapshots: {error}") from None
    return os.path.abspath(keep)


class _Hooks(object):
    def __init__(self, folder: str, is_temporary: bool, events: int, brief: Optional[bool], names: float,
                 redact: bool) -> None:
        redaction = _holders.Redaction() if redact else None
        self.failures = Failures(folder, _cells.names, _holders.Names(_holders.Limits(names), redaction=redaction))
        self.brief = brief
        self.pid = os.getpid()
        self.is_temporary = is_temporary
        self.before = sys.excepthook
        self.before_of_threads = threading.excepthook
        sys.excepthook = self.at_end
        threading.excepthook = self.at_end_of_thread
        _watch_shell(self)
        atexit.register(self.at_exit)
        _imports.after("torch", lambda torch: self.watch(torch, events))

    def watch(self, torch: Any, events: int) -> None:
        self.failures.watch(torch, events)
        error = getattr(torch.cuda, "OutOfMemoryError", None)
        if error is not None:
            _observer.watch_errors(error, self.at_error)

    def at_error(self, error: BaseException) -> None:
        """PyTorch's error was made, in the thread that gets it."""
        _verdict.attach(error, self.failures.of_error(error), self.brief)

    def explained(self, error: Optional[BaseException]) -> str:
        """Sees to the error's notes; the text, where the traceback does not show them."""
        failed = None if error is None else _sources.failure_in(error)
        if error is None or failed is None:
            return ""
        if not hasattr(failed, "__ashlar_failure__"):
            self.at_error(failed)  # of another framework or allocator
        if _verdict.HAS_NOTES:
            _verdict.settle(error)
            return ""
        return _verdict.text_for(failed, getattr(failed, "__ashlar_failure__", None), self.brief) + "\n"

    def at_end(self, kind: Any, error: Any, trace: Any) -> None:
        text = self.explained(error)
        self.before(kind, error, trace)
        if text:
            sys.stderr.write(text)

    def at_end_of_thread(self, args: Any) -> None:
        text = self.explained(args.exc_value)
        self.before_of_threads(args)
        if text:
            sys.stderr.write(text)

    def at_exit(self) -> None:
        if os.getpid() != self.pid:
            return
        unseen = [one for one in self.failures.all if not one.is_shown]
        if unseen:
            sys.stderr.write(caught(unseen))
        if self.is_temporary:
            shutil.rmtree(self.failures.folder, ignore_errors=True)


def _watch_shell(hooks: _Hooks) -> None:
    """IPython prints notes as they lie there: they are made before it does."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return
    before = shell.showtraceback

    def showtraceback(*args: Any, **kwargs: Any) -> None:
        text = hooks.explained(sys.exc_info()[1])
        before(*args, **kwargs)
        if text:
            sys.stderr.write(text)

    shell.showtraceback = showtraceback


def caught(unseen: List[Failure]) -> str:
    """What is said of errors that the program handled by itself: of the last one, as the others may have led to it."""
    count = "an out-of-memory error" if len(unseen) == 1 else f"{len(unseen)} out-of-memory errors"
    which = "" if len(unseen) == 1 else ", the last one"
    text = _verdict.text_for(None, unseen[-1], is_brief=True).strip()
    return f"\nashlar: the program caught {count}{which}: {text}\n"
