"""One device's history: the file that the allocator writes, files that ended and were not read yet, and what was read.

    recording = Recording(handle, new_file, most_entries=1000)
    recording.begin()
    recording.entries(device=0)       # the last 1000, in PyTorch's shape; the recording goes on
    recording.skips = {"free_requested"}  # actions that are left out of what is read from now on

A file ends before it is read, and the next begins at once: what other threads do between the two is not recorded. A file
stays until it was read, so that a reading that failed is made up for by the next. Where `most_entries` is a number, at
most two files are kept, each of max(LEAST_BYTES, most_entries * BYTES_AN_ENTRY) and what a second adds. Threads: one at a
time.
"""

import contextlib
import os
import pickle
import shutil
import subprocess

from . import _library as c
from . import _native

LEAST_BYTES = 4 << 20  # of a file before it is changed for the next
BYTES_AN_ENTRY = 24  # more than one takes (about 7): a file that grew by this much has them all


def convert(recording):
    """A recording as a snapshot, a dictionary."""
    done = subprocess.run([_native.program(), "convert", recording, "-", "--to", "pickle"], capture_output=True, check=False,
                          env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"})
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise RuntimeError(f"ashlar: no memory snapshot: {words[-1] if words else 'ashlar convert failed'}")
    return pickle.loads(done.stdout)


def _size(path):
    with contextlib.suppress(OSError):
        return os.path.getsize(path)
    return 0


def remove(path):
    with contextlib.suppress(OSError):
        os.remove(path)


class Recording:
    def __init__(self, handle, new_file, most_entries=None):
        self.most_entries = most_entries
        self.skips = frozenset()
        self._handle = handle
        self._new_file = new_file
        self._current = None
        self._size_at_first = 0  # of the current file: the state that it begins with
        self._ended = []  # files, the oldest first
        self._entries = []  # what was read, before all of these

    def begin(self):
        if self._current is None:
            self._start(self._new_file())

    def _start(self, file):
        c.start_recording(self._handle, file)
        self._current, self._size_at_first = file, _size(file)

    def _turn(self):
        following = self._new_file()
        ended, self._current = self._current, None
        try:
            if ended is not None:
                self._ended.append(ended)
                c.stop_recording(self._handle)
        finally:
            self._start(following)

    def entries(self, device):
        """Errors leave everything for the next call."""
        self._turn()
        while self._ended:
            traces = convert(self._ended[0])["device_traces"]
            found = traces[device] if device < len(traces) else []
            self._entries += [entry for entry in found if entry["action"] not in self.skips]
            remove(self._ended.pop(0))
            if self.most_entries is not None:
                del self._entries[:-self.most_entries or None]
        return list(self._entries)

    def copy(self, file):
        """The file that is being written, as far as it is; whether there is one."""
        if self._current is None:
            return False
        shutil.copyfile(self._current, file)
        return True

    def shorten_if_long(self):
        """Begins the next file where this one has all the entries that are wanted, and drops what is older."""
        self.begin()
        if self.most_entries is None:
            return
        if _size(self._current) - self._size_at_first > max(LEAST_BYTES, self.most_entries * BYTES_AN_ENTRY):
            self._turn()
            self._entries.clear()
            for file in self._ended[:-1]:
                remove(file)
            del self._ended[:-1]

    def end(self):
        """For good. That something was not written is of no interest any more."""
        with contextlib.suppress(c.Error):
            if self._current is not None:
                c.stop_recording(self._handle)
        for file in [*self._ended, self._current or ""]:
            remove(file)
