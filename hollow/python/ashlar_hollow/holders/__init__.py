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

from . import calls, libraries, record, roots, tensors
from .record import KEY, OUT_OF_MEMORY, PEAK, PEAK_KEY
from .redaction import Redaction
from .walk import ON_A_BUSY_MACHINE, Bounded, Limits, Walk

__all__ = ["KEY", "PEAK_KEY", "Limits", "Names", "Redaction", "looks_of", "refused"]

_OUR_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_A_LONG_TIME = 1000.0  # seconds between switches of threads


FIRST_WALKS = 3
FIRST_SECONDS = 5.0  # of walks that are due whatever the run takes: the failure that ends a program is its last
LATER_SHARE = 100  # of the run, beyond them
SHARE = 10  # all looks at peaks take one second in so many
FIRST_LOOK_SECONDS = 0.1  # what the first one is taken to need


def looks_of(text):
    """(Limits or None, whether at peaks) of "3s", "3", "off", "peak" or "peak,3s", as a user writes it; None: no time."""
    parts = text.split(",")
    times = [one for one in parts if one != PEAK]
    return _limits_of(times[0] if len(times) == 1 else ""), PEAK in parts


def _limits_of(text):
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
    """What a process takes: the first walks, then as many as take little time. Nothing comes out but a line.

    `began`: when the process did, by time.monotonic(). `redaction`: None, or what hides the program's names.
    """

    def __init__(self, limits=None, began=None, redaction=None):
        self.limits, self.redaction = limits or Limits(), redaction
        self.began = time.monotonic() if began is None else began
        self.walks, self.seconds = 0, 0.0
        self.is_under_way = self.has_complained = False
        self.newest = None  # the record that was taken last, of no peak
        self.peak, self.seconds_of_peak = None, FIRST_LOOK_SECONDS  # the record of the newest peak, and what it took

    def is_due(self):
        may_take = FIRST_SECONDS + (time.monotonic() - self.began) / LATER_SHARE
        return self.walks < FIRST_WALKS or self.seconds < may_take

    def complain(self, reason):
        if not self.has_complained:
            self.has_complained = True
            sys.stderr.write("ashlar: not kept: who holds the memory, by name: %s\n" % reason)

    def _may(self, torch):
        if self.limits.seconds <= 0 or self.is_under_way:
            return False
        why = refused(torch)
        if why is not None:
            self.complain(why)
        return why is None

    @contextlib.contextmanager
    def taking(self, torch, when, is_at_end=False):
        """Gives a function that puts the names into a snapshot made within, those that are taken or known."""
        if not self.is_due() or not self._may(torch):
            yield lambda snapshot: self._add_beside(snapshot, when)
            return
        taking = Taking(torch, self.limits, self.redaction)
        self.is_under_way = True
        try:
            with taking:
                yield lambda snapshot: self._add(taking, snapshot, when, is_at_end)
        finally:
            self.is_under_way = False
            self.walks += 1
            self.seconds += taking.seconds

    def has_time_for_peak(self, share):
        """Whether all looks and one more at a peak take no more than one second in so many of the run."""
        return share * (self.seconds + self.seconds_of_peak) <= time.monotonic() - self.began

    def look_at_peak(self, torch, snapshot_of):
        """The names of now are those of the newest peak. `snapshot_of()` gives the blocks. False: they were not taken."""
        if not self._may(torch):
            return False
        began = time.monotonic()
        share = (began - self.began) / SHARE - self.seconds
        self.is_under_way = True
        try:
            with Taking(torch, self.limits.at_most(max(share, FIRST_LOOK_SECONDS)), self.redaction,
                        is_brief=True) as taking:
                snapshot = snapshot_of()
                taking.add_to(snapshot, PEAK)
            self.peak = snapshot[KEY]
            return True
        except Exception as error:
            self.complain(type(error).__name__ + _said_by(error))
            return False
        finally:
            self.is_under_way = False
            self.seconds_of_peak = time.monotonic() - began
            self.seconds += self.seconds_of_peak

    def add_newest(self, snapshot, when):
        """What was taken before."""
        if self.newest is not None:
            snapshot[KEY] = self.newest
        self._add_beside(snapshot, when)

    def _add_beside(self, snapshot, when):
        """What the heap is not asked for. The peak's names not where a request has failed: that is the moment then."""
        libraries.add_to(snapshot, without_folders=self.redaction is not None)
        failed = self.newest is not None and self.newest["when"] == OUT_OF_MEMORY
        if self.peak is not None and when != OUT_OF_MEMORY and not failed:
            snapshot[PEAK_KEY] = self.peak

    def _add(self, taking, snapshot, when, is_at_end):
        self._add_beside(snapshot, when)
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
        self.names, self.redaction = names, names.redaction

    @contextlib.contextmanager
    def taking(self, _, when, *__):
        yield lambda snapshot: self.names.add_newest(snapshot, when)


class Taking(object):
    """From before the snapshot on: the heap is then the program's alone. `is_brief`: the program's variables are enough."""

    def __init__(self, torch, limits, redaction=None, is_brief=False):
        self.torch, self.limits, self.redaction, self.is_brief = torch, limits, redaction, is_brief
        self.every = []
        self.seconds = 0.0  # of the walk, without the snapshot: of its work, or a third of the clock's where that is more

    def __enter__(self):
        self.collects, self.interval = gc.isenabled(), sys.getswitchinterval()
        gc.disable()
        sys.setswitchinterval(_A_LONG_TIME)
        self.every = [] if self.is_brief else gc.get_objects()
        return self

    def __exit__(self, *_):
        self.every = []
        sys.setswitchinterval(self.interval)
        if self.collects:
            gc.enable()

    def add_to(self, snapshot, when, is_at_end=False):
        began, worked = time.monotonic(), time.thread_time()
        try:
            with tensors.undisturbed(self.torch):
                snapshot[KEY] = self._taken(record.Blocks(snapshot, calls.under_way(is_ours)), when, is_at_end)
        finally:
            passed = time.monotonic() - began
            self.seconds = max(time.thread_time() - worked, passed / ON_A_BUSY_MACHINE)
        snapshot[KEY]["seconds"] = round(passed, 3)

    def _taken(self, blocks, when, is_at_end):
        modules = roots.Modules(is_ours)
        walk = Walk(self.torch, blocks, self.limits, is_ours, modules.names_of_program(), self.redaction,
                    self.every)
        walk.follows_graphs = tensors.can_follow_graphs(self.torch)
        walk.hide(self, vars(self), self.limits, self.every, self.redaction)
        try:
            try:
                if is_at_end:
                    roots.walk_globals(walk, modules)
                elif self.is_brief:
                    roots.walk_variables(walk, modules)
                else:
                    roots.walk_all(walk, modules, self.every)
            except Bounded:
                pass
            return record.make(walk, blocks, when)
        finally:
            walk.forget()
