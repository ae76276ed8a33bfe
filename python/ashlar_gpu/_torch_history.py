"""torch.cuda.memory's history and snapshots, of Ashlar's allocators, in PyTorch's shape: memory_viz opens them.

    history.start(max_entries=100000)
    history.snapshot()["device_traces"][0]      # {"action": "alloc", "addr": ..., "size": ..., "stream": ...} and so on

Each device has its recording (_torch_recording); a snapshot is what `ashlar convert` makes of the files. Entries have no
frames: PyTorch tells its call stacks to its own allocator only. Where max_entries bounds the entries, a thread bounds the
files. Threads: any; snapshots take turns.
"""

import atexit
import os
import shutil
import tempfile
import threading
import warnings

from . import _library as c
from . import _torch_plugin as plugin
from . import _torch_settings
from ._torch_recording import Recording, convert, remove

SECONDS_BETWEEN_LOOKS = 1.0  # at the files' sizes; what is written is at most a second old


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
        self._recordings = {}  # by device
        self._ended = None  # an event that ends the thread which looks at the sizes
        self.is_on = False
        self.max_entries = None
        self.skips = frozenset()

    def _here(self):
        if self._pid != os.getpid():
            self._lock = threading.RLock()
            self._forget()

    def _new_file(self):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="ashlar-torch-")
        os.makedirs(self._folder, exist_ok=True)  # somebody may have tidied up
        self._files += 1
        return os.path.join(self._folder, f"{self._files}.ashlar")

    def _remove(self):
        if self._folder is not None and os.getpid() == self._pid:
            with self._lock:
                self._end_looks()
                shutil.rmtree(self._folder, ignore_errors=True)

    def start(self, max_entries=None, clears=False, skips=()):
        """`skips`: actions that are not kept."""
        self._here()
        with self._lock:
            if clears:
                self.stop()
            self.is_on, self.max_entries, self.skips = True, max_entries, frozenset(skips)
            for device, recording in self._recordings.items():
                if recording.skips != self.skips:
                    recording.entries(device)  # what is there was recorded by the other rule
                recording.most_entries, recording.skips = max_entries, self.skips
            self._end_looks()
            if max_entries is not None:
                self._ended = threading.Event()
                threading.Thread(target=self._look, args=(self._ended,), name="ashlar-history", daemon=True).start()
            for device in plugin.open_allocators():
                self.add_device(device)

    def add_device(self, device):
        """PyTorch uses the device for the first time, or recording begins."""
        self._here()
        with self._lock:
            if self.is_on:
                self._recording(device).begin()

    def _recording(self, device):
        if device not in self._recordings:
            self._recordings[device] = Recording(plugin.open_allocator(device), self._new_file, self.max_entries)
            self._recordings[device].skips = self.skips
        return self._recordings[device]

    def copy_recording(self, device, file):
        """What is recorded of the device so far, but for the last second; whether there is anything."""
        self._here()
        with self._lock:
            recording = self._recordings.get(device)
            return recording is not None and recording.copy(file)

    def stop(self):
        """What was recorded is forgotten, as PyTorch does."""
        self._here()
        with self._lock:
            self.is_on = False
            self._end_looks()
            while self._recordings:
                self._recordings.popitem()[1].end()

    def _end_looks(self):
        if self._ended is not None:
            self._ended.set()
        self._ended = None

    def _look(self, ended):
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            with self._lock:
                for device, recording in ({} if ended.is_set() else self._recordings).items():
                    try:
                        recording.shorten_if_long()
                    except Exception as error:  # nothing above would see it; the next look or snapshot tries again
                        warnings.warn(f"ashlar: the history of device {device}: {error}", stacklevel=1)

    def _state(self, handle):
        file = self._new_file()
        try:
            c.dump_snapshot(handle, file)
            return convert(file)
        finally:
            remove(file)

    def snapshot(self, pool=(0, 0), include_traces=True, devices=1):
        """`pool` other than (0, 0): of this pool only."""
        self._here()
        with self._lock:
            out = {"segments": [], "device_traces": [[] for _ in range(devices)], "allocator_settings": {},
                   "external_annotations": []}
            for device, handle in plugin.open_allocators().items():
                state = self._state(handle)
                out["segments"] += [segment for segment in _with_every_key(state["segments"])
                                    if pool == (0, 0) or tuple(segment["segment_pool_id"]) == pool]
                out["allocator_settings"] = _torch_settings.as_recorded(state.get("allocator_settings", {}))
                if include_traces and self.is_on:
                    out["device_traces"][device] = [entry for entry in self._recording(device).entries(device)
                                                    if pool == (0, 0) or tuple(entry.get("pool_id", pool)) == pool]
            return out
