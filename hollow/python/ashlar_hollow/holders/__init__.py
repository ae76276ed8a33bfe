"""Who holds each live byte of PyTorch's allocator, by its Python name.

    names = holders.Names(holders.Limits(seconds=10))       # of a process: it keeps count of the time
    with names.taking(torch, "call") as add_names:
        snapshot = torch.cuda.memory._snapshot()
        add_names(snapshot)                                 # snapshot["ashlar_names"]

The heap is walked from the program's variables (roots, walk), each object is read by C alone (reading, tensors), and the
record says of each live block what holds it (record). The program's own code is not run, nothing is allocated on the
device, no lock is taken, and the GIL is held throughout: other threads wait. The collector rests meanwhile, and its counts
are afterwards as they were before.

Used by what `ashlar dry-run` and `ashlar record` put into a program, and by the package. Imports nothing of ours.
"""

import contextlib
import gc
import os
import sys
import time

from . import record, roots, tensors
from .record import KEY
from .walk import Bounded, Limits, Walk

__all__ = ["KEY", "Limits", "Names", "limits_of", "refused"]

_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_A_LONG_TIME = 1000.0  # seconds between switches of threads


FIRST_WALKS = 3


def limits_of(text):
    """"3s", "3" or "off", as a user writes it; None where it is neither."""
    if text == "off":
        return Limits(seconds=0.0)
    try:
        seconds = float(text[:-1] if text.endswith("s") else text)
    except ValueError:
        return None
    return Limits(seconds) if 0 <= seconds < 3600 else None


def is_ours(file):
    return file.startswith(_OUR_FOLDER) or os.sep + "ashlar_hollow" + os.sep in file


def refused(torch):
    """Why no names are taken, in a few words; None where they are."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python runs without the GIL"
    if not hasattr(torch._C, "DisableTorchFunction") or not hasattr(torch._C, "_DisableTorchDispatch"):
        return "PyTorch %s is older than 2.0" % torch.__version__
    return None


class Names(object):
    """What a process takes: the first walks, then as many as take little of its time. Nothing comes out but a line."""

    def __init__(self, limits=None):
        self.limits = limits or Limits()
        self.walks, self.seconds, self.began = 0, 0.0, time.monotonic()
        self.is_under_way = self.has_complained = False
        self.newest = None  # the record that was taken last

    def is_due(self):
        return self.walks < FIRST_WALKS or self.seconds < min(5, (time.monotonic() - self.began) / 10)

    def complain(self, reason):
        if not self.has_complained:
            self.has_complained = True
            sys.stderr.write("ashlar: not kept: who holds the memory, by name: %s\n" % reason)

    @contextlib.contextmanager
    def taking(self, torch, when, is_at_end=False):
        """Gives a function that puts the names into a snapshot made within: None, where none are taken."""
        if self.limits.seconds <= 0 or self.is_under_way or not self.is_due():
            yield lambda snapshot: None
            return
        why = refused(torch)
        if why is not None:
            self.complain(why)
            yield lambda snapshot: None
            return
        taking = Taking(torch, self.limits)
        self.is_under_way = True
        try:
            with taking:
                yield lambda snapshot: self._add(taking, snapshot, when, is_at_end)
        finally:
            self.is_under_way = False
            self.walks += 1
            self.seconds += taking.seconds

    def _add(self, taking, snapshot, when, is_at_end):
        try:
            taking.add_to(snapshot, when, is_at_end)
            self.newest = snapshot[KEY]
        except Exception as error:  # whatever it is, the program and the snapshot go on
            snapshot.pop(KEY, None)
            self.complain(type(error).__name__ + _said_by(error))


def _said_by(error):
    try:
        return ": " + str(error).splitlines()[0]
    except Exception:
        return ""


class Again(object):
    """In the place of Names: a later snapshot has the names of the failure, whose history it has too."""

    def __init__(self, names):
        self.names = names

    @contextlib.contextmanager
    def taking(self, *_):
        newest = self.names.newest
        yield lambda snapshot: None if newest is None else snapshot.update({KEY: newest})


class Taking(object):
    """From before the snapshot on: the heap is then the program's alone."""

    def __init__(self, torch, limits):
        self.torch, self.limits = torch, limits
        self.every = []
        self.seconds = 0.0  # of the walk, without the snapshot

    def __enter__(self):
        self.collects, self.interval = gc.isenabled(), sys.getswitchinterval()
        gc.disable()
        sys.setswitchinterval(_A_LONG_TIME)
        self.every = gc.get_objects()
        return self

    def __exit__(self, *_):
        self.every = []
        sys.setswitchinterval(self.interval)
        if self.collects:
            gc.enable()

    def add_to(self, snapshot, when, is_at_end=False):
        began = time.monotonic()
        try:
            with tensors.undisturbed(self.torch):
                snapshot[KEY] = self._taken(record.Blocks(snapshot, _stack()), when, is_at_end)
        finally:
            self.seconds = time.monotonic() - began
        snapshot[KEY]["seconds"] = round(self.seconds, 3)

    def _taken(self, blocks, when, is_at_end):
        modules = roots.Modules(is_ours)
        walk = Walk(self.torch, blocks, self.limits, is_ours, modules.names_of_program())
        walk.follows_graphs = tensors.can_follow_graphs(self.torch)
        walk.hide(self, vars(self), self.limits, self.every)
        try:
            try:
                if is_at_end:
                    roots.walk_globals(walk, modules)
                else:
                    roots.walk_all(walk, modules, self.every)
            except Bounded:
                pass
            return record.make(walk, blocks, when)
        finally:
            walk.forget()


def _stack():
    """(file, line) of this thread's calls, innermost first, without ours."""
    found, frame = [], sys._getframe()
    while frame is not None:
        if not is_ours(frame.f_code.co_filename):
            found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found
