"""Where walks begin: the program's own modules and frames first, so that the name a person knows claims first.

    walk_variables(walk, modules)     # the program's, then those of the frames of libraries
    walk_all(walk, modules, every)    # and libraries, and what no variable reaches
    walk_globals(walk, modules)       # at a program's end, when the frames are gone

Thread rule: with the GIL held throughout.
"""

import contextvars
import os
import sys
import sysconfig
import threading
import types

from . import reading
from .tensors import Unasked
from .traits import IN_CALL, IN_TORCH
from .walk import CYCLE, CYCLE_OF, GLOBAL, LIBRARIES, LIBRARY_FRAMES, UNSEEN, UNSEEN_HOLDER, USER, Root

_TORCH, _COPY = os.sep + "torch" + os.sep, os.sep + "copy.py"
_MODULES = os.path.join("torch", "nn", "modules", "module.py")
MOST_CYCLE_TYPES = 4
# Roots that are no variables.
ENDED_BY, HANDLED, FINALIZER = "the error that ended the program", "the error being handled", "weakref.finalize"

_LIBRARY_PATHS = tuple(
    path + os.sep
    for path in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    if path
)


def is_library(file):
    """Whether the file is Python's or was installed; what has no file is a library's too, but for what a user types."""
    if type(file) is not str:
        return True
    if file.startswith("<"):
        return not file.startswith(("<stdin>", "<string>", "<ipython-input"))
    return file.startswith(_LIBRARY_PATHS) or os.sep + "site-packages" + os.sep in file or "dist-packages" in file


class Modules(object):
    """[(name, globals, file)], those of the program first."""

    def __init__(self, is_ours):
        self.program, self.libraries = [], []
        for name, module in list(sys.modules.items()):
            names = reading.module_dict(module)
            if names is None or type(name) is not str:
                continue
            file = names.get("__file__")
            if name == "__main__" and file is None:  # Python takes it away when the script has ended
                file = (sys.argv or [None])[0]
            if (type(file) is str and is_ours(file)) or name.split(".")[0] in _OURS:
                continue
            is_program = name == "__main__" or (type(file) is str and not is_library(file))
            (self.program if is_program else self.libraries).append((name, names, file if type(file) is str else None))
        self.program.sort(key=lambda one: one[0] != "__main__")  # stable: in the order of their imports

    def names_of_program(self):
        return {name for name, _, _ in self.program}


_OURS = ("ashlar_hollow", "ashlar_gpu")


def prepare(walk, modules):
    walk.is_traced = sys.gettrace() is not None
    walk.known_globals.update(id(names) for _, names, _ in modules.program + modules.libraries)


def stacks(is_ours):
    """The frames of each thread, the outermost first; this thread's first. Ours would hold themselves: they are left out."""
    tops = sys._current_frames()
    frame, found = tops.pop(threading.get_ident(), None), []
    for _ in range(len(tops) + 1):
        stack = []
        while frame is not None:
            if not is_ours(frame.f_code.co_filename):
                stack.append(frame)
            frame = frame.f_back
        found.append(stack[::-1])
        frame = tops.popitem()[1] if tops else None
    return found


def walk_variables(walk, modules):
    """Those of the program, and of the frames of libraries."""
    prepare(walk, modules)
    walk.phase = USER
    for _, names, file in modules.program:
        walk.namespace(names, file)
    threads = stacks(walk.is_ours)
    runs_in = {id(frame): IN_TORCH for stack in threads for frame in stack if _is_at_work(frame)}
    runs_in.update((id(frame), IN_CALL) for stack in threads for frame in _within_call(stack))
    for is_for in (lambda file: not is_library(file), is_library):
        frames = [one for stack in threads for one in stack if is_for(one.f_code.co_filename)]
        _walk_frames(walk, [one for one in frames if id(one) not in runs_in], runs_in)
        walk.drain_objects()  # a call's own words for them ("module", "layer") come after the names of the program
        _walk_frames(walk, [one for one in frames if id(one) in runs_in], runs_in)
        if walk.phase == USER:
            _handled_errors(walk)
            _context(walk)
        walk.drain()
        walk.phase = LIBRARY_FRAMES


def _walk_frames(walk, frames, runs_in):
    for frame in frames:
        if id(frame) not in walk.seen:
            walk.seen[id(frame)] = -1
            walk.kept.append(frame)
            walk.walk_frame(frame, -1, runs_in=runs_in.get(id(frame)))


def walk_all(walk, modules, every):
    walk_variables(walk, modules)
    if walk.is_nearly_all_named():
        return
    _libraries(walk, modules)
    walk.phase = UNSEEN
    unreached = _Unreached(walk, every)
    unreached.walk_held_from_c()
    unreached.walk_cycles()


def _is_at_work(frame):
    """Of the operation under way: a backward pass that computes a checkpointed part again, a step of an optimizer, a deep copy."""
    file = frame.f_code.co_filename
    return is_library(file) and (_TORCH in file or file.endswith(_COPY))


def _within_call(stack):
    """The frames from the outermost call of a module on."""
    for place, frame in enumerate(stack):
        code = frame.f_code
        if code.co_name == "_call_impl" and code.co_filename.endswith(_MODULES):
            return stack[place:]
    return []


def walk_globals(walk, modules):
    prepare(walk, modules)
    for _, names, file in modules.program:
        walk.namespace(names, file)
    ended_by = reading.module_dict(sys).get("last_value")
    if ended_by is not None:
        walk.root(Root(ENDED_BY, GLOBAL), ended_by)
    walk.drain()
    if not walk.is_nearly_all_named():
        _libraries(walk, modules)


def _libraries(walk, modules):
    walk.phase = LIBRARIES
    for _, names, file in modules.libraries:
        walk.namespace(names, file)
    walk.queue.extend(walk.library_types)
    del walk.library_types[:]
    for finalizer in list(reading.finalizers().values()):
        walk.root(Root(FINALIZER, GLOBAL), finalizer)
    walk.drain()


def _handled_errors(walk):
    error = sys.exc_info()[1]
    if error is not None:
        walk.root(Root(HANDLED, GLOBAL), error)


def _context(walk):
    for variable, value in contextvars.copy_context().items():
        name = variable.name if type(variable) is contextvars.ContextVar else "[]"
        walk.root(Root(name if reading.is_name(name) else "[]", GLOBAL), value)


# --- what no variable reaches ---


class _Unreached(object):
    """What the collector knows and no variable leads to: held from within C, or by a reference cycle alone.

    The collector's own rule tells them apart: an object with more references than those from objects of this kind is
    held by something that is not to be seen.
    """

    def __init__(self, walk, every):
        self.walk = walk
        self.within, self.holders = {}, {}  # id -> references from objects of this kind, and the place of one in rest
        self.nodes = {}  # of graphs, by id: they are held by tensors, which the collector does not know
        self.rest = [one for one in every if id(one) not in walk.seen]
        self.ids = {id(one) for one in self.rest}
        self.tensors = {}  # where a tensor lies -> its place in rest
        for place, one in enumerate(self.rest):
            if walk.tensors.is_tensor(type(one)):
                self.tensors[walk.tensors.place(one)] = place
        self._hold_bases()
        walk.check()
        for place, one in enumerate(self.rest):
            for held in reading.referents(one):
                self._hold(held, place)
            if walk.follows_graphs and walk.tensors.is_tensor(type(one)):
                self._hold_graph(one, place)
        walk.check()

    def _hold(self, held, place):
        if id(held) in self.ids:
            self.within[id(held)] = self.within.get(id(held), 0) + 1
            self.holders.setdefault(id(held), place)

    def _hold_bases(self):
        """A view holds what it is a view of, in C++. Asked where both are there: else Python would make the other."""
        tensors, places = self.walk.tensors, {}
        for place, one in enumerate(self.rest):
            if tensors.is_tensor(type(one)):
                places.setdefault(tensors.address(one), []).append(place)
        for place in [one for alike in places.values() if len(alike) > 1 for one in alike]:
            base = tensors.viewed(self.rest[place])
            if base is not None and base is not self.rest[place]:
                self._hold(base, place)

    def _hold_graph(self, tensor, place):
        tensors = self.walk.tensors
        first = tensors.node(tensor)
        waiting = [] if first is None else [first]
        while waiting:
            node = waiting.pop()
            key = node if type(node) is int else id(node)
            if key not in self.nodes:
                self.nodes[key] = node
                self._hold(node, place)
                for saved in tensors.saved_by(node, self.walk.known):
                    self._hold(self._object_of(saved), place)
                waiting.extend(tensors.next_nodes(node))

    def _object_of(self, saved):
        place = self.tensors.get(saved.tensor) if type(saved) is Unasked else None
        return saved if place is None else self.rest[place]

    def walk_held_from_c(self):
        references = _references_of_one_in_two_lists()
        for one in self.rest:
            known = references + self.within.get(id(one), 0) + (id(one) in self.nodes)
            if sys.getrefcount(one) > known and not self._is_nobody(one):
                self.walk.root(Root(reading.type_name(type(one)), UNSEEN_HOLDER), one)
        self.walk.drain()

    def _is_nobody(self, one):
        """Of the interpreter, or what C++ keeps for Python of a tensor that has a name."""
        tensors, kind = self.walk.tensors, type(one)
        if tensors.is_tensor(kind):
            return self.walk.blocks.at(tensors.address(one)) in self.walk.claims
        return tensors.is_storage(kind) or any(kind is known for known in _MACHINERY)

    def walk_cycles(self):
        for one in self.rest:
            if id(one) not in self.walk.seen and self.walk.tensors.is_tensor(type(one)):
                types = self._types_on_cycle(one)
                if not types and self._is_nobody(one):
                    continue
                name = CYCLE_OF + ", ".join(types) if types else reading.type_name(type(one))
                self.walk.root(Root(name, CYCLE if types else UNSEEN_HOLDER), one)
                self.walk.drain()

    def _types_on_cycle(self, one):
        """From the tensor up to where the chain of its holders closes; none where it does not."""
        chain, places = [], {}
        while id(one) not in places:
            places[id(one)] = len(chain)
            chain.append(one)
            place = self.holders.get(id(one))
            if place is None:
                return []
            one = self.rest[place]
        cycle = chain[places[id(one)]:]
        names = {reading.type_name(type(known)) for known in cycle if type(known) is not dict}
        return sorted(names or {"dict"})[:MOST_CYCLE_TYPES]


def _references_of_one_in_two_lists():
    """What sys.getrefcount says of an object of two lists, asked in a loop over one of them."""
    every = [[]]
    rest = [one for one in every]
    for one in rest:
        return sys.getrefcount(one)


_MACHINERY = (type(sys._getframe()), type(iter([])), type(iter(())), types.MethodType)
