"""The store of a process group whose other ranks have no process.

    set        is kept for the ranks that are run later
    get        what this rank set, else what a rank that ran before set, else the value of this rank's own key of the same
               form: "size/3" is answered by "size/0". A key that is none of these would be waited for for ever: after some
               seconds, in which another thread may set it, one line says what was waited for
    add        the peers add as much, each in its turn: the first add of rank r gives r + 1, and adding 0 what all added
    wait       is over at once: the peers have done what is waited for
    check      whether a key is there

Thread rule: any thread. PyTorch's C++ calls these methods with the GIL held.
"""

import ctypes
import hashlib
import os
import re
import sys
import threading
import time

PATIENCE_SECONDS = 5.0  # of a key that no rank before has set
LOOK_SECONDS = 0.05
UNIQUE_ID_BYTES = 128  # NCCL_UNIQUE_ID_BYTES
NUMBERS = re.compile(r"\d+")


def _line():
    """Where the program waits: its innermost line outside PyTorch and this package."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not any(part in file for part in (os.sep + "ashlar_hollow" + os.sep, os.sep + "torch" + os.sep)):
            return "%s:%d" % (os.path.basename(file), frame.f_lineno)
        frame = frame.f_back
    return "a thread of PyTorch"


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def new_unique_id():
    """One of the hollow NCCL, for a communicator whose root has not run."""
    room = ctypes.create_string_buffer(UNIQUE_ID_BYTES)
    try:
        return room.raw if ctypes.CDLL(None).ncclGetUniqueId(room) == 0 else None
    except AttributeError:
        return None


class Values(object):
    """The keys of this rank and, by the folder, of the ranks that ran before it."""

    def __init__(self, told):
        self.told = told
        self.own = {}
        self.added = {}
        self.forms = {}  # a key with its numbers left out -> this rank's newest key of that form
        self.waited = {}  # key -> when it was first looked for
        self.lock = threading.RLock()
        self.folder = os.path.join(told.folder, "store")

    def _path(self, key):
        return os.path.join(self.folder, hashlib.sha1(key.encode()).hexdigest())

    def put(self, key, value):
        with self.lock:
            self.own[key] = value
            self.forms[NUMBERS.sub("#", key)] = key
        self.told.unique_id(key, value)
        try:
            os.makedirs(self.folder, exist_ok=True)
            part = "%s.part-%d" % (self._path(key), os.getpid())
            with open(part, "wb") as out:
                out.write(value)
            os.replace(part, self._path(key))
        except OSError:
            pass  # later ranks then do not hear it

    def there(self, key):
        """Its value, or None."""
        with self.lock:
            if key in self.own:
                return self.own[key]
        try:
            with open(self._path(key), "rb") as file:
                return file.read()
        except OSError:
            return None

    def answer(self, key):
        """In the name of a peer that is not there; None: nobody knows."""
        if "cuda" in key.split("/"):  # the store of a group's part for the device: NCCL asks it for unique ids alone
            made = new_unique_id()
            if made is not None:
                self.put(key, made)
            return made
        with self.lock:
            like = self.forms.get(NUMBERS.sub("#", key))
            return None if like is None else self.own[like]

    def add(self, key, amount):
        ranks = self.told.ranks_of_key(key)
        place = ranks.index(self.told.rank) if self.told.rank in ranks else 0
        with self.lock:
            before = self.added.get(key, 0)
            self.added[key] = before + amount
            total = before * len(ranks) + (amount * (place + 1) if amount else 0)
            self.own[key] = str(self.added[key] * len(ranks)).encode()
        return total

    def is_overdue(self, key):
        with self.lock:
            return time.monotonic() - self.waited.setdefault(key, time.monotonic()) > PATIENCE_SECONDS

    def nobody_sets(self, key):
        return "rank %d of %d waits for the key '%s' of the store (%s), and no rank that was run has set it" % (
            self.told.rank, self.told.world, key, _line())


def store_class(c10d, told):
    """A class of stores over one set of values, to be made with any arguments, such as TCPStore's."""
    error = getattr(c10d, "DistStoreError", RuntimeError)
    values = Values(told)
    kept = []

    class PeersStore(c10d.Store):
        def __init__(self, *_, **__):
            super(PeersStore, self).__init__()
            kept.append(self)  # PyTorch keeps the C++ half alone, which has no methods without this one

        def set(self, key, value):
            values.put(key, _bytes(value))

        def compare_set(self, key, expected, desired):
            now = values.there(key)
            if now is None and _bytes(expected) not in (b"",):
                return _bytes(expected)
            if now is None or now == _bytes(expected):
                values.put(key, _bytes(desired))
                return _bytes(desired)
            return now

        def get(self, key):
            while True:
                value = values.there(key)
                if value is None:
                    value = values.answer(key)
                if value is not None:
                    told.unique_id(key, value)
                    return value
                if values.is_overdue(key):
                    raise error(values.nobody_sets(key))
                time.sleep(LOOK_SECONDS)

        def add(self, key, amount):
            return values.add(key, amount)

        def wait(self, keys, timeout=None):
            pass

        def check(self, keys):
            if all(values.there(key) is not None for key in keys):
                return True
            is_ours = not isinstance(threading.current_thread(), threading._DummyThread)  # not PyTorch's watchdog
            overdue = [key for key in keys if is_ours and values.there(key) is None and values.is_overdue(key)]
            if overdue:
                raise error(values.nobody_sets(overdue[0]))
            return False

        def append(self, key, value):
            values.put(key, (values.there(key) or b"") + _bytes(value))

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, new):
            for key, value in zip(keys, new):
                self.set(key, value)

        def delete_key(self, key):
            with values.lock:
                return values.own.pop(key, None) is not None

        def num_keys(self):
            return len(values.own)

        def list_keys(self):
            return sorted(values.own)

        def has_extended_api(self):
            return True

        def clone(self):
            return self

        host = property(lambda self: os.environ.get("MASTER_ADDR", "localhost"))
        port = property(lambda self: int(os.environ.get("MASTER_PORT", "29500")))

    return PeersStore
