"""Memory histories: recording from CUDA's first use on, and what a process leaves in the folder.

    history-PID.pickle   a snapshot with its history, in the form of torch.cuda.memory._dump_snapshot
    oom-PID-1.pickle     the same at the first out-of-memory error, before what failed gives its memory back
    oom-PID-2.pickle     the same at the last one, where there were more
    info-PID.json        see Recording.info; bytes, and seconds since the epoch

A program that records by itself keeps its own settings. A process that never uses CUDA writes nothing.
Thread rule: hooks run in the program's threads; files are written by one thread at a time.
"""

import atexit
import inspect
import json
import os
import pickle
import sys
import threading
import time

from . import peaks, signals


class Recording(object):
    """One process's recording. A forked child starts its own at its own first use of CUDA."""

    def __init__(self, torch, folder, max_entries):
        self.torch = torch
        self.folder = folder
        self.max_entries = max_entries
        self.users = False  # the program said itself what is to be recorded
        self.peaks = peaks.Peaks(torch)
        self._forget()

    def _forget(self):
        """As at a process's start: a fork may have left the parent's state."""
        self.pid = 0  # of the process in which CUDA is in use
        self.began = None
        self.failures = []  # {"device", "requested", "when", "text", "file"}
        self.dump_seconds = 0.0
        self.stopped = False
        self.writing = threading.RLock()

    def begin(self):
        """CUDA is up in this process, and nothing has been allocated."""
        if self.pid == os.getpid():
            return
        self._forget()
        self.pid, self.began = os.getpid(), time.time()
        self.peaks.watch_resets()  # here, since a plug-in may have put functions of its own in PyTorch's place
        if not self.users:
            start_recording(self.torch, self.max_entries)
        self.torch._C._cuda_attach_out_of_memory_observer(self.at_failure)
        atexit.register(self.at_exit)
        signals.install(self)
        _at_exit_of_worker(self.at_exit)

    def here(self):
        return self.pid == os.getpid()

    def path(self, name):
        return os.path.join(self.folder, name)

    def dump(self, name):
        """Writes a snapshot whole or not at all."""
        began = time.time()
        path = self.path(name)
        try:
            snapshot = self.torch.cuda.memory._snapshot()
            drop_our_frames(snapshot)
            with open(path + ".part", "wb") as out:
                pickle.dump(snapshot, out)
            os.replace(path + ".part", path)
        except Exception as error:
            sys.stderr.write("ashlar: no memory history in %s: %s\n" % (path, error))
            _remove(path + ".part")
        self.dump_seconds += time.time() - began

    def at_failure(self, device, requested, device_total, device_free):
        """PyTorch calls this before it throws: what the failing code holds is still there."""
        if not self.here():
            return
        with self.writing:
            failure = {"device": device, "requested": requested, "when": time.time(), "text": None}
            self.failures.append(failure)
            number = min(len(self.failures), 2)
            # A program that probes for its batch size fails often: from the third on, at most a tenth of the time.
            if len(self.failures) < 3 or self.dump_seconds < 5 + (time.time() - self.began) / 10:
                failure["file"] = "oom-%d-%d.pickle" % (self.pid, number)
                self.dump(failure["file"])

    def at_message(self, text):
        if self.here() and self.failures and self.failures[-1]["text"] is None:
            self.failures[-1]["text"] = text

    def before_stop(self):
        """The program stops its recording, which empties it: what it has goes to the file now."""
        if self.here() and not self.stopped:
            self.write("recording stopped")
        self.stopped = True

    def write(self, reason):
        if not self.here():
            return
        with self.writing:
            if not self.stopped:
                self.dump("history-%d.pickle" % self.pid)
            info = self.info(reason)
            path = self.path("info-%d.json" % self.pid)
            with open(path + ".part", "w") as out:
                json.dump(info, out, indent=1)
            os.replace(path + ".part", path)

    def at_exit(self):
        if not self.here():
            return
        error = getattr(sys, "last_value", None)
        try:
            self.write("exit" if error is None else "exception")
        except Exception as failure:
            sys.stderr.write("ashlar: no memory history: %s\n" % failure)
        self.pid = 0  # written: not again

    def info(self, reason):
        error = getattr(sys, "last_value", None)
        devices = self.peaks.devices()
        ranks = {key.lower(): _number(os.environ.get(key)) for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
        told = {
            "pid": os.getpid(),
            "argv": getattr(sys, "orig_argv", None) or list(sys.argv),
            "torch": self.torch.__version__,
            "device_indexes": [device["index"] for device in devices],
            "devices": devices,
            "num_ooms": sum(device["num_ooms"] for device in devices),
            "num_alloc_retries": sum(device["num_alloc_retries"] for device in devices),
            "failures": self.failures[:1] + self.failures[1:][-1:],
            "exit_reason": reason,
            "exception": None if error is None else "%s: %s" % (type(error).__name__, error),
            "recorded_by_program": self.users,
            "began": self.began,
            "when": time.time(),
        }
        told.update(ranks)
        return told


def drop_our_frames(snapshot):
    """Stacks are the program's: without the frames of this package, through which its operations went."""
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    holders = [event for trace in snapshot.get("device_traces", ()) for event in trace]
    for segment in snapshot.get("segments", ()):
        holders.append(segment)
        holders.extend(segment.get("blocks", ()))
    for holder in holders:
        frames = holder.get("frames")
        if frames and any(frame["filename"].startswith(here) for frame in frames):
            holder["frames"] = [frame for frame in frames if not frame["filename"].startswith(here)]


def _number(text):
    return int(text) if text and text.isdigit() else None


def _remove(path):
    try:
        os.remove(path)
    except OSError:
        pass


def _at_exit_of_worker(call):
    """multiprocessing's forked workers leave by os._exit, past atexit."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.current_process().name != "MainProcess":
        from multiprocessing.util import Finalize

        Finalize(None, call, exitpriority=-100)


def start_recording(torch, max_entries):
    """Python stacks only: those of C++ would be looked up when the process ends, which takes long."""
    record = getattr(torch.cuda.memory, "_ashlar_record", torch.cuda.memory._record_memory_history)
    try:
        has_stacks = "stacks" in inspect.signature(record).parameters
    except (TypeError, ValueError):
        has_stacks = True
    if has_stacks:  # 2.1 and later
        record("all", context="all", stacks="python", max_entries=max_entries)
    else:
        record(True, trace_alloc_max_entries=max_entries, trace_alloc_record_context=True)


def _watch_users_recording(torch, recording):
    memory = torch.cuda.memory
    original = memory._record_memory_history

    def _record_memory_history(enabled="all", *args, **kwargs):
        if not enabled:
            recording.before_stop()
        else:
            recording.users, recording.stopped = True, False
        return original(enabled, *args, **kwargs)

    _record_memory_history.__doc__ = original.__doc__
    try:
        _record_memory_history.__signature__ = inspect.signature(original)
    except (TypeError, ValueError):
        pass
    memory._ashlar_record = original
    memory._record_memory_history = _record_memory_history


def _watch_messages(torch, recording):
    """The text of an out-of-memory error exists only once the error does."""
    error = torch.cuda.OutOfMemoryError

    def __init__(self, *args):
        super(error, self).__init__(*args)
        recording.at_message(str(args[0]) if args else "")

    error.__init__ = __init__


def install(torch, folder, max_entries):
    if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
        text = "ashlar: PyTorch %s has no CUDA, or is older than 2.0: no memory history\n"
        sys.stderr.write(text % torch.__version__)
        return
    recording = Recording(torch, folder, max_entries)
    _watch_users_recording(torch, recording)
    _watch_messages(torch, recording)
    torch.cuda._lazy_call(recording.begin)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recording._forget)
