"""Memory histories: recording from CUDA's first use on, and what a process leaves in the folder.

    history-PID.pickle   a snapshot with its history, in the form of torch.cuda.memory._dump_snapshot
    oom-PID-N.pickle     the same at the N-th out-of-memory error, before what failed gives its memory back: the first, the last
    info-PID.json        see Recording.info; bytes, and seconds since the epoch
    usr1-PID             while it runs, where it answers SIGUSR1 with who holds the memory (see signals)

A program that records by itself keeps its own settings. A process that never uses CUDA writes nothing. What PyTorch does
not answer (see observer) is not kept: info-PID.json says why, and the program goes on as without us.
Thread rule: hooks run in the program's threads; files are written by one thread at a time.
"""

import atexit
import functools
import inspect
import json
import os
import sys
import threading
import time

from . import held_peaks, holders, observer, peaks, reads, routing, settings, signals
from .unseen import unseen

AT_END_SECONDS = 1.0


class Recording(object):
    """One process's recording. A forked child starts its own at its own first use of CUDA."""

    def __init__(self, torch, folder, max_entries):
        self.torch = torch
        self.folder = folder
        self.max_entries = max_entries
        self.users = False  # the program said itself what is to be recorded
        self.peaks = peaks.Peaks(torch)
        self.process_began = settings.BEGAN
        self._forget()

    def forked(self):
        """In the child."""
        self.process_began = time.monotonic()
        self._forget()

    def _forget(self):
        """As at a process's start: a fork may have left the parent's state."""
        self.pid = 0  # of the process in which CUDA is in use
        self.began = None
        limits, self.looks_at_peaks = holders.looks_of(os.environ.get(settings.NAMES, ""))
        redaction = holders.Redaction() if settings.flag(settings.REDACT) else None
        self.holders = holders.Names(limits, self.process_began, redaction)
        self.failures = observer.Failures(self.folder, holders=self.holders)
        self.stopped = False
        self.writing = threading.RLock()

    def begin(self):
        """CUDA is up in this process, and nothing has been allocated."""
        if self.pid == os.getpid():
            return
        self._forget()
        self.pid, self.began = os.getpid(), time.time()
        self.peaks.watch_resets()  # here, since a plug-in may have put functions of its own in PyTorch's place
        self.failures.begin(self.torch, None if self.users or not self.max_entries else self.max_entries)
        atexit.register(self.at_exit)
        signals.install(self)
        if self.looks_at_peaks:
            held_peaks.start(self.torch, self.holders, at_operations=settings.small_values() > 0)
        _at_exit_of_worker(self.at_exit)

    def here(self):
        return self.pid == os.getpid()

    def path(self, name):
        return os.path.join(self.folder, name)

    def at_error(self, error):
        """The text of an out-of-memory error exists only once the error does."""
        if not self.here():
            return
        if self.failures.is_observed and not any(not one.message for one in self.failures.all):
            return  # one that the program made
        self.failures.of_error(error)

    def before_stop(self):
        """The program stops its recording, which empties it: what it has goes to the file now."""
        if self.here() and not self.stopped:
            self.write("recording stopped")
        self.stopped = True

    def write(self, reason, takes_names=False, is_at_end=False):
        if not self.here():
            return
        with self.writing:
            if not self.stopped and self.failures.has_history:
                path = self.path("history-%d.pickle" % self.pid)
                taken = self.holders if takes_names else holders.Again(self.holders)
                observer.write_snapshot(self.torch, path, holders=taken, when=reason, is_at_end=is_at_end)
            info = self.info(reason)
            path = self.path("info-%d.json" % self.pid)
            with open(path + ".part", "w") as out:
                json.dump(info, out, indent=1)
            os.replace(path + ".part", path)

    def at_exit(self):
        if not self.here():
            return
        error = getattr(sys, "last_value", None)
        takes_names = bool(os.environ.get(settings.HOLLOW_RUN)) and not self.failures.all
        if takes_names:  # a whole run comes before it: of this process it is the last
            self.holders.limits = self.holders.limits.at_most(AT_END_SECONDS)
        _guarded(self.write)("exit" if error is None else "exception", takes_names, is_at_end=True)
        signals.ends(self)
        self.pid = 0  # written: not again

    def info(self, reason):
        error = getattr(sys, "last_value", None)
        devices = self.peaks.devices()
        ranks = {key.lower(): _number(os.environ.get(key)) for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
        seen = self.failures.all
        told = {
            "pid": os.getpid(),
            "argv": getattr(sys, "orig_argv", None) or list(sys.argv),
            "torch": self.torch.__version__,
            "archs": _archs(self.torch),
            "device_indexes": [device["index"] for device in devices],
            "devices": devices,
            "num_ooms": sum(device["num_ooms"] for device in devices),
            "num_alloc_retries": sum(device["num_alloc_retries"] for device in devices),
            "num_failures": len(seen),
            "failures": [_told(failure) for failure in seen[:1] + seen[1:][-1:]],
            "not_kept": self.failures.not_kept,
            "routing_choices": routing.chosen,
            "exit_reason": reason,
            "exception": None if error is None else observer.named(error),
            "recorded_by_program": self.users,
            "began": self.began,
            "when": time.time(),
        }
        told.update(ranks)
        told.update(reads.told())
        return told


def _told(failure):
    file = failure.snapshot and os.path.basename(failure.snapshot)
    return {
        "device": failure.device,
        "requested": failure.requested,
        "when": failure.when,
        "text": failure.message or None,
        "file": file,
    }


def _archs(torch):
    """What this build has kernels for, as torch.cuda.get_arch_list() says it, which asks the device first."""
    try:
        return torch._C._cuda_getArchFlags().split()
    except Exception:
        return []


def _number(text):
    return int(text) if text and text.isdigit() else None


def _guarded(call):
    """The call, of which nothing comes out but a line: a program that asked for none of this goes on."""

    @functools.wraps(call)
    def guarded(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except Exception as error:
            sys.stderr.write("ashlar: no memory history: %s\n" % observer.named(error))

    return guarded


def _at_exit_of_worker(call):
    """multiprocessing's forked workers leave by os._exit, past atexit."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.current_process().name != "MainProcess":
        from multiprocessing.util import Finalize

        Finalize(None, call, exitpriority=-100)


def _watch_users_recording(torch, recording):
    memory = torch.cuda.memory
    original = memory._record_memory_history

    def _record_memory_history(enabled="all", *args, **kwargs):
        if not enabled:
            _guarded(recording.before_stop)()
        made = original(enabled, *args, **kwargs)
        if enabled:
            recording.users, recording.stopped = True, False
        return made

    watched = unseen(_record_memory_history)
    watched.__doc__ = original.__doc__
    try:
        watched.__signature__ = inspect.signature(original)
    except (TypeError, ValueError):
        pass
    memory._ashlar_record = original
    memory._record_memory_history = watched


def _keep_our_frames_out(torch):
    """The program's own snapshots hold its own stacks, by whichever of PyTorch's functions it takes them."""
    original = getattr(torch._C, "_cuda_memorySnapshot", None)
    if original is None:
        return

    def snapshot(*args, **kwargs):
        made = original(*args, **kwargs)
        _guarded(observer.clean_frames)(made, {})
        return made

    snapshot.__doc__ = original.__doc__
    torch._C._cuda_memorySnapshot = unseen(snapshot)


def install(torch, folder, max_entries):
    if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        text = "ashlar: PyTorch %s has no CUDA, or is older than 2.0: no memory history\n"
        sys.stderr.write(text % torch.__version__)
        return
    recording = Recording(torch, folder, max_entries)
    _watch_users_recording(torch, recording)
    _keep_our_frames_out(torch)
    observer.watch_errors(torch.cuda.OutOfMemoryError, _guarded(recording.at_error))
    torch.cuda._lazy_call(_guarded(recording.begin))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recording.forked)
