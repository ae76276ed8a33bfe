"""A process that has imported what each run of a program imports, and is forked for each of them.

The launcher (fork_server.h) starts the program's own command with ASHLAR_FORK_SERVER=N. Before the program begins, this interpreter imports the
modules that a first run named (imported.py), and says "ready" on the socket N. Then each message is a run: the path of a file with its
environment, and as descriptors its input, its output, the rules of Landlock and the lock of its folder. In the fork the program begins,
as it does in an interpreter of its own, and the socket is told of its beginning and its end. One that is stopped at its last step leaves
the interpreter as it is.

An import that uses a device is left to the forks, and not begun here: it may do what can be done once in a process. The capability of a card
is told to those who ask for no more. What hooks put in the place of a module's function reaches the modules that have it by name too, as if they were imported after the hooks.
Before Python 3.9 (socket.recv_fds) no run is forked. Thread rule: the main thread, before the program has threads.
"""

import atexit
import contextlib
import ctypes
import importlib
import json
import os
import select
import socket
import sys

from . import imported, settings

RESTRICT_SELF = 446  # Landlock's, on every architecture
CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
NO_NEW_PRIVILEGES, DEATH_SIGNAL, KILL = 38, 1, 9
LEAST_LOCK = 200  # as run_folder.cc has it
DESCRIPTORS = 4
MESSAGE = 1 << 16
LOOK = 0.02  # seconds between two looks at what has ended


def start(begin):
    """Forks until the launcher is gone, and returns in each fork, where `begin(stopped)` has been called."""
    end = _End()
    try:
        server = _Server(socket.socket(fileno=int(os.environ.pop(settings.FORK_SERVER))))
        server.load(os.environ.pop(settings.FORK_MODULES))
        server.say("ready")
        server.serve()
    except BaseException:
        os._exit(1)  # each run imports by itself
    server.start(lambda: begin(end.stopped))


class _End(object):
    """A run that was stopped where all has been seen ends without taking its modules down: that takes longer than such a run."""

    def __init__(self):
        self.has_stopped = False
        atexit.register(self.leave)  # the first to be registered is the last to be called

    def stopped(self):
        self.has_stopped = True

    def leave(self):
        if self.has_stopped:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
            ctypes.PyDLL(None).exit(0)  # libraries end as ever; no other thread is let into the interpreter


class _UsesDevice(BaseException):
    """No import catches it: a module that is not whole is none."""


@contextlib.contextmanager
def _without_devices(torch):
    """How many there are and their capability can be asked; a process that has used one is not forked."""

    def refuse(*args, **kwargs):
        raise _UsesDevice()

    def count():
        return devices

    def capability(device=None):
        return _capability(0 if device is None else torch.cuda._get_device_index(device, optional=True))

    devices = _count_of_devices()
    kept = []
    for place, name, function in (
        (torch.cuda, "_lazy_init", refuse),
        (torch.cuda, "get_device_capability", capability),
        (torch._C, "_cuda_getDeviceCount", count),
    ):
        kept.append((place, name, getattr(place, name)))
        setattr(place, name, function)
    try:
        yield
    finally:
        for place, name, function in kept:
            setattr(place, name, function)


class _Refusing(object):
    """Finds no module, and begins none of those that use a device."""

    def __init__(self, names):
        self.names = frozenset(names)

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise _UsesDevice()


def _count_of_devices():
    with open(os.path.join(os.environ[settings.HOLLOW_RUN], "machine")) as lines:
        given = dict(line.rstrip("\n").partition("=")[::2] for line in lines)
    return int(given.get("devices", 1))


def _capability(index):
    """(major, minor), of the driver, which makes no context for it."""
    driver, out = ctypes.CDLL("libcuda.so.1"), []
    for attribute in CAPABILITY:
        number, device = ctypes.c_int(), ctypes.c_int()
        if (driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index)
                or driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)):
            raise _UsesDevice()
        out.append(number.value)
    return tuple(out)


class _Server(object):
    def __init__(self, link):
        self.link = link
        self.at_start = set(sys.modules)  # they have what they have in any run
        self.at_torch = set()
        self.before = {}  # what each module has, before any hook
        self.under_way = set()

    def load(self, path):
        socket.recv_fds  # before time is spent
        with open(path) as lines:
            told = json.load(lines)
        torch = importlib.import_module("torch")
        self.at_torch = set(sys.modules)
        refusing = _Refusing(told["using"])
        sys.meta_path.insert(0, refusing)
        with _without_devices(torch):
            for name in told["modules"]:
                try:
                    importlib.import_module(name)
                except (Exception, _UsesDevice):
                    pass  # the program says itself what comes of it
        sys.meta_path.remove(refusing)
        for name in list(sys.modules):
            if any(parent not in sys.modules for parent in imported.parents(name)):
                del sys.modules[name]  # of a package that is imported anew
        self.before = {name: dict(vars(module)) for name, module in list(sys.modules.items()) if hasattr(module, "__dict__")}

    def say(self, text):
        self.link.send(text.encode())

    def serve(self):
        """Returns in a fork."""
        while True:
            came = select.select([self.link], [], [], LOOK if self.under_way else None)[0]
            self.reap()
            if came and self.take():
                return

    def reap(self):
        while self.under_way:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return
            if process in self.under_way:
                self.under_way.discard(process)
                self.say("ended %d %d" % (process, status))

    def take(self):
        """Whether this is the fork."""
        path, files, _, _ = socket.recv_fds(self.link, MESSAGE, DESCRIPTORS)
        if not path:
            os._exit(0)  # the launcher is gone
        process = os.fork()
        if process == 0:
            try:
                self.become(path.decode(), files)
            except BaseException as error:
                os.write(2, ("ashlar: a fork did not begin: %s\n" % error).encode())
                os._exit(127)
            return True
        for file in files:
            os.close(file)
        self.under_way.add(process)
        self.say("began %d" % process)
        return False

    def become(self, path, files):
        self.link.close()
        source, target, rules, lock = files
        os.setsid()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ashlar_hollow_begin_run.restype = ctypes.c_bool
        libc.prctl(DEATH_SIGNAL, KILL, 0, 0, 0)
        import fcntl

        fcntl.fcntl(lock, fcntl.F_DUPFD, LEAST_LOCK)
        os.dup2(source, 0)
        os.dup2(target, 1)
        os.dup2(target, 2)
        with open(path) as text:
            environment = json.load(text)
        os.environ.clear()
        os.environ.update(environment)
        if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(RESTRICT_SELF, rules, 0):
            raise OSError(ctypes.get_errno(), "Landlock")
        for file in files:
            os.close(file)
        if not libc.ashlar_hollow_begin_run():
            raise RuntimeError("an import has used a device")
        _forget()

    def start(self, begin):
        begin()
        for is_torch, reached in ((False, self.at_start), (True, self.at_torch)):
            replaced = _replaced(self.before, is_torch)
            for name, module in list(sys.modules.items()) if replaced else ():
                if name not in reached and name in self.before:
                    _reach(module, replaced)


def _forget():
    """What an interpreter of its own would have made anew."""
    import time

    settings.BEGAN = time.monotonic()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"].tempdir = None
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()


def _replaced(before, is_torch):
    """{id of what stood there: (it, what stands there now)} of modules that are torch's, or of all others."""
    out = {}
    for name, names in before.items():
        if (name.split(".")[0] == "torch") != is_torch or name not in sys.modules:
            continue
        now = vars(sys.modules[name])
        for key, value in names.items():
            if key in now and now[key] is not value and callable(value):
                out[id(value)] = value, now[key]
    return out


def _reach(module, replaced):
    for key, value in list(vars(module).items()):
        found = replaced.get(id(value))
        if found is not None and found[0] is value:
            setattr(module, key, found[1])
