"""torch.cuda.memory's history and snapshots, of Ashlar's allocators, in PyTorch's shape: memory_viz opens them.

    history.start(max_entries=100000)
    history.snapshot()["device_traces"][0]      # {"action": "alloc", "addr": ..., "size": ..., "stream": ...} and so on

The allocator writes its recording into a file; a snapshot is what `ashlar convert` makes of it. Entries have no frames:
PyTorch tells its call stacks to its own allocator only. Threads: any; snapshots take turns.
"""

import atexit
import os
import pickle
import shutil
import subprocess
import tempfile
import threading

from . import _library as c
from . import _native
from . import _torch_plugin as plugin
from . import _torch_settings


def convert(recording):
    """A recording as a snapshot, a dictionary."""
    done = subprocess.run([_native.program(), "convert", recording, "-", "--to", "pickle"], capture_output=True, check=False,
                          env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"})
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(f"ashlar: no memory snapshot: {words[-1] if words else 'ashlar convert failed'}")
    return pickle.loads(done.stdout)


def _with_every_key(segments):
    """A free block asks for nothing; memory_viz wants the key all the same."""
    for segment in segments:
        for block in segment["blocks"]:
            block.setdefault("requested_size", 0)
    return segments


class History:
    """One process's. A forked child has none."""

    def __init__(self):
        self._lock = threading.RLock()
        self._forget()
        atexit.register(self._remove)  # after what asks for a snapshot at the end, which came later

    def _forget(self):
        self._pid = os.getpid()
        self._folder = None
        self._files = 0
        self._traces = {}  # device -> entries of recordings that have ended
        self._current = {}  # device -> the file that is being written
        self.is_on = False
        self.max_entries = None

    def _here(self):
        if self._pid != os.getpid():
            self._lock = threading.RLock()
            self._forget()

    def _new_file(self):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="ashlar-torch-")
        self._files += 1
        return os.path.join(self._folder, f"{self._files}.ashlar")

    def _remove(self):
        if self._folder is not None and os.getpid() == self._pid:
            shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, max_entries=None, clears=False):
        self._here()
        with self._lock:
            if clears:
                self.stop()
            self.is_on, self.max_entries = True, max_entries
            for device in plugin.open_allocators():
                self.add_device(device)

    def add_device(self, device):
        """PyTorch uses the device for the first time, or recording begins."""
        self._here()
        with self._lock:
            if not self.is_on or device in self._current:
                return
            file = self._new_file()
            c.start_recording(plugin.open_allocator(device), file)
            self._current[device] = file

    def stop(self):
        """What was recorded is forgotten, as PyTorch does."""
        self._here()
        with self._lock:
            for device in list(self._current):
                self._end(device)
            self._traces, self.is_on = {}, False

    def _end(self, device):
        file = self._current.pop(device)
        c.stop_recording(plugin.open_allocator(device))
        return file

    def _turn(self, device):
        """What is recorded so far goes to the traces; the recording goes on in another file."""
        file = self._end(device)
        made = convert(file)["device_traces"]
        os.remove(file)
        self._traces.setdefault(device, []).extend(made[device] if device < len(made) else [])
        if self.max_entries is not None:
            del self._traces[device][:-self.max_entries or None]
        self.add_device(device)

    def snapshot(self, pool=(0, 0), include_traces=True, devices=1):
        """`pool` other than (0, 0): of this pool only."""
        self._here()
        with self._lock:
            out = {"segments": [], "device_traces": [[] for _ in range(devices)], "allocator_settings": {},
                   "external_annotations": []}
            for device, handle in plugin.open_allocators().items():
                file = self._new_file()
                c.dump_snapshot(handle, file)
                state = convert(file)
                os.remove(file)
                out["segments"] += [segment for segment in _with_every_key(state["segments"])
                                    if pool == (0, 0) or tuple(segment["segment_pool_id"]) == pool]
                out["allocator_settings"] = _torch_settings.as_recorded(state.get("allocator_settings", {}))
                if include_traces and device in self._current:
                    self._turn(device)
                    out["device_traces"][device] = [entry for entry in self._traces[device]
                                                    if pool == (0, 0) or tuple(entry.get("pool_id", pool)) == pool]
            return out
