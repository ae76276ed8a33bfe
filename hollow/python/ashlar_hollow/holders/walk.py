"""Walks the heap from its roots, breadth first, and keeps for each live block of device memory the ways that lead to it.

    walk = Walk(torch, blocks, limits, user_modules)
    walk.root(Root("losses", "local", file, line, function), value)
    walk.run()                        # may end early: walk.bound says by what
    walk.claims[block]                # [(rank, node)], the best is the least
    walk.name_of(node)

A way is a chain of nodes up to a Root: a variable of a frame, a module, a closure. Where it passes a frame or a function,
the variable there is the name, and what held the frame is its kind: a traceback, a generator, a hook. Modules are walked
at once and optimizers last, so that a parameter is known by its module. A graph belongs to the first variable that has it.
Thread rule: one walk at a time, with the GIL held throughout.
"""

import collections
import gc
import sys
import time
import types

from . import reading
from .casts import Castable
from .tensors import Tensors, Unasked
from .traits import IN_CALL, Traits

LITTLE = 200  # one in so many bytes
MOST_NAMES = 8  # of a block, beside the owner's
PARAMETER, BUFFER, GRADIENT, STATE = "parameter", "buffer", "gradient", "optimizer_state"
GRAPH, HOOK, TRACEBACK, GENERATOR, CLOSURE = "graph", "hook", "traceback", "generator", "closure"
LOCAL, GLOBAL, ATTRIBUTE, ELEMENT = "local", "global", "attribute", "element"
CYCLE, UNSEEN_HOLDER = "cycle", "unseen"
CYCLE_OF = "reference cycle of "
BY_ROLE = (PARAMETER, BUFFER, GRADIENT, STATE)
USER, LIBRARY_FRAMES, LIBRARIES, UNSEEN = range(4)  # phases, in their order
CHECKED_EVERY = 2048
ON_A_BUSY_MACHINE = 3  # times as long by the clock as the walk itself works
LONGEST_NAME = 200


class Bounded(Exception):
    """The walk has met its bound."""


class Limits(object):
    def __init__(self, seconds=10.0, objects=5000000):
        self.seconds, self.objects = seconds, objects

    def at_most(self, seconds):
        return Limits(min(self.seconds, seconds), self.objects)


class Root(object):
    """A variable: where names begin. `runs_in`: a frame's that runs within a module's call, or is PyTorch's; else None."""

    __slots__ = ("name", "kind", "file", "line", "function", "runs_in")

    def __init__(self, name, kind, file=None, line=None, function=None, runs_in=None):
        self.name, self.kind, self.file, self.line, self.function = name, kind, file, line, function
        self.runs_in = runs_in


class Walk(object):
    def __init__(self, torch, blocks, limits, is_ours, user_modules=(), redaction=None, every=()):
        self.tensors = Tensors(torch)
        self.every, self.known_objects = every, None  # that the collector knew before; not asked where no graph is met
        self.blocks, self.limits, self.is_ours, self.user_modules = blocks, limits, is_ours, user_modules
        self.is_module = _kind_of("torch.nn.modules.module", "Module")
        self.is_optimizer = _kind_of("torch.optim.optimizer", "Optimizer")
        self.parents, self.labels, self.marks = [], [], []
        self.seen = {}  # id of an object -> its first node
        self.kept = []  # the objects, so that ids stay theirs
        self.addresses = {}  # id of a tensor -> the address of its storage
        self.claims = {}
        self.parts = set()  # nodes of tensors that are a part of what they keep
        self.nodes_of_graph = {}  # node of a variable -> how many nodes its graph has
        self.modes_of_graph = {}  # and in which modes the modules are whose parameters it leads to
        self.castable = Castable(torch)
        self.traits = Traits(self.shape, self.tensors.is_tensor)
        self.ways = {}  # id of a type -> (the type, how its instances are walked)
        self.shapes = {}
        self.queue, self.last, self.graphs = collections.deque(), collections.deque(), collections.deque()
        self.library_types = []
        self.carried = set()  # ids of tensors that go on to what is next: a module has them, or the program and a frame within a module's call
        self.in_graph = set()  # ids of the nodes of graphs that have a variable
        self.known_globals = set()  # ids of the dictionaries of modules, and of those that were walked
        self.unread_frames = 0
        self.of_tensor = self.walk_tensor  # one bound method, told by `is`
        self.of_python = {
            dict: self.walk_dict,
            types.FunctionType: self.walk_function,
            types.FrameType: self.walk_frame,
            types.TracebackType: self.walk_traceback,
            types.GeneratorType: self.walk_generator,
            types.CoroutineType: self.walk_generator,
            types.AsyncGeneratorType: self.walk_generator,
        }
        self.phase = USER
        self.is_traced = False
        self.follows_graphs = True
        self.bound = None  # "time" or "objects"
        self.redaction = redaction
        self.began, self.worked = time.monotonic(), time.thread_time()
        self.until_check = CHECKED_EVERY

    # --- nodes ---

    def _node(self, parent, label, mark):
        self.parents.append(parent)
        self.labels.append(label)
        self.marks.append(mark)
        self.until_check -= 1
        if not self.until_check:
            self.check()
        return len(self.parents) - 1

    def check(self):
        self.until_check = CHECKED_EVERY
        worked, passed = time.thread_time() - self.worked, time.monotonic() - self.began
        if max(worked, passed / ON_A_BUSY_MACHINE) > self.limits.seconds:
            self.bound = "time"
            raise Bounded()
        if len(self.seen) > self.limits.objects:
            self.bound = "objects"
            raise Bounded()

    def root(self, root, value, parent=-1, mark=None):
        self.push(value, parent, root, mark)

    def push(self, value, parent, label, mark=None):
        if not gc.is_tracked(value):
            return  # it holds nothing
        key = id(value)
        known = self.seen.get(key)
        if known is not None and key not in self.addresses:
            return  # each way to a tensor is a name of its block; to all else the first is enough
        kind = type(value)
        way = self.ways.get(id(kind)) or self._way(kind)
        how = way[1]
        if how is None:
            return
        node = self._node(parent, label, mark)
        if known is None:
            self.seen[key] = node
            self.kept.append(value)
            way[2]((how, value, node))
        if how is self.of_tensor:
            self._claim_tensor(value, key, node)
            if known is not None and mark in BY_ROLE and self.marks[known] not in BY_ROLE:
                self.seen[key] = node  # what hangs on it is named after the better way
            if known is not None and type(label) is Root and label.runs_in == IN_CALL and not self._is_of_call(known):
                self.carried.add(key)

    def _is_of_call(self, node):
        root = self.root_of(node)
        return root is not None and root.runs_in is not None

    def _claim_tensor(self, value, key, node):
        address = self.addresses.get(key)
        if address is None:
            address = self.addresses[key] = self.tensors.address(value)
        block = self.blocks.at(address) if address else None
        if block is not None:
            if self.tensors.is_part(value, self.blocks.bytes_of(block)):
                self.parts.add(node)
            self._claim_block(block, node)

    def claim(self, address, node, is_graph=False):
        block = self.blocks.at(address) if address else None
        if block is not None:
            self._claim_block(block, node, is_graph)

    def _claim_block(self, block, node, is_graph=False):
        claims, claim = self.claims.setdefault(block, []), (self._rank(node, is_graph), node)
        if len(claims) < MOST_NAMES:
            claims.append(claim)
        elif claim[0] < claims[-1][0]:
            claims[-1] = claim

    def _rank(self, node, is_graph):
        """Less is better: by its role, by its phase, a graph after a variable, and a part after a whole tensor."""
        if self._mark_of(node) in BY_ROLE:
            return 0
        return 1 + 4 * self.phase + 2 * is_graph + (node in self.parts)

    def _mark_of(self, node):
        """Its own, or the nearest above it within the same variable."""
        while node >= 0:
            mark = self.marks[node]
            if mark is not None:
                return mark
            if type(self.labels[node]) is Root:
                return None
            node = self.parents[node]
        return None

    # --- ways through types ---

    def _way(self, kind):
        """(the type, how its instances are walked, where they wait)."""
        how, put = self.walk_object, self.queue.append
        if self.tensors.is_tensor(kind):
            how = self.of_tensor
        elif self.tensors.is_storage(kind):
            how = self.walk_storage
        elif reading.one_of(kind, reading.NOT_WALKED):
            how = None
        elif reading.is_kind(kind, type):
            how = self.walk_type
        elif self.tensors.is_node(kind):
            how = self.walk_node
        elif self.is_module(kind):
            how, put = self.walk_module, self.queue.appendleft
        elif self.is_optimizer(kind):
            how, put = self.walk_optimizer, self.last.append
        elif reading.is_kind(kind, BaseException):
            how = self.walk_exception
        elif type(kind) is type:
            how = self.of_python.get(kind, how)
        way = self.ways[id(kind)] = (kind, how, put)
        if reading.is_heap_type(kind) and how is not None:  # a class that no module names has attributes too
            self.push(kind, -1, Root(reading.type_name(kind), GLOBAL))
        return way

    def shape(self, kind):
        found = self.shapes.get(id(kind))
        if found is None:
            found = self.shapes[id(kind)] = reading.Shape(kind)
        return found

    def walk_object(self, value, node):
        kind = type(value)
        shape = self.shape(kind)
        if shape.container is dict:
            self.walk_dict(value, node)
        elif shape.container is not None:
            self.traits.container(node, shape.container)
            for field, one in shape.elements(value):
                self.push(one, node, "." + field if field is not None and reading.is_name(field) else "[]")
        self._parts(value, node, shape)

    def _parts(self, value, node, shape):
        """What has a name first; then what C alone knows of."""
        if reading.is_cache(shape.kind):
            self.traits.containers[node] = "lru_cache"
        held = [one for one in reading.referents(value) if gc.is_tracked(one) and one is not shape.kind]
        if not held:
            return  # nothing is asked of it: Python would make a dictionary where there is none
        dictionary, attributes = shape.attributes(value)
        self.seen.setdefault(id(dictionary), node)
        self._attributes(attributes, node)
        for one in held:
            if id(one) not in self.seen:
                self.push(one, node, "")

    def _attributes(self, attributes, node):
        for name, one in attributes:
            if type(name) is str and name.endswith("_hooks"):
                self.traits.hooks(one)
                self.push(one, node, "." + name, HOOK)
            else:
                self.push(one, node, "." + name if reading.is_name(name) else "[]")

    def walk_dict(self, value, node):
        self.traits.container(node, dict)
        for label, key, one in reading.labelled(value):
            if label is not None:
                self.push(one, node, label)
                continue
            if type(key) is str and "." in key and self.tensors.is_tensor(type(one)):
                self.traits.state_dicts.add(node)  # "layers.0.weight"
            self.push(key, node, "[]", ELEMENT)
            self.push(one, node, ("of", id(key)) if self.tensors.is_tensor(type(key)) else "[]")

    def walk_module(self, value, node):
        dictionary, attributes = self.shape(type(value)).attributes(value)
        self.seen.setdefault(id(dictionary), node)
        self.traits.module(node, attributes)
        for name, one in attributes:
            mark = {"_parameters": PARAMETER, "_buffers": BUFFER}.get(name if type(name) is str else None)
            if (mark is None and name != "_modules") or not reading.is_kind(type(one), dict):
                self._attributes([(name, one)], node)
                continue
            self.seen.setdefault(id(one), node)
            for key, part in reading.items(one):
                shown = "*" if type(key) is str and key.isdigit() else key if reading.is_name(key) else "[]"
                self.push(part, node, "." + shown, mark)

    def walk_optimizer(self, value, node):
        dictionary, attributes = self.shape(type(value)).attributes(value)
        self.seen.setdefault(id(dictionary), node)
        self.traits.optimizers.add(node)
        for name, one in attributes:
            if type(name) is str and name == "state":
                self.push(one, node, ".state", STATE)
            else:
                if type(name) is str and name == "param_groups":
                    self.traits.optimized.update(self.blocks.at(self.tensors.address(parameter)) for parameter
                                                 in reading.parameters_of(one) if self.tensors.is_tensor(type(parameter)))
                self._attributes([(name, one)], node)

    def walk_type(self, value, node):
        if self.phase < LIBRARIES and reading.module_of_type(value) not in self.user_modules:
            self.library_types.append((self.walk_type, value, node))  # in its turn
            return
        for name, one in list(reading.dict_of_type(value).items()):
            if type(name) is str and not name.startswith("__"):
                self.push(one, node, "." + name if reading.is_name(name) else "[]")

    def walk_storage(self, value, node):
        self.claim(self.tensors.storage_address(value), node)

    def walk_tensor(self, value, node):
        tensors = self.tensors
        node = self.seen.get(id(value), node)
        mark = self.marks[node] if self.marks[node] in BY_ROLE else None
        if mark == PARAMETER:
            self.castable.add(tensors, value, self.blocks.at(self.addresses.get(id(value)) or 0))
        for part in tensors.inner(value):
            self.push(part, node, "", mark)
        gradient = tensors.gradient(value)
        if type(gradient) is Unasked:
            self.claim(gradient.address, self._node(node, ".grad", GRADIENT))
        elif gradient is not None:
            self.push(gradient, node, ".grad", GRADIENT)
        for hooks in tensors.hooks(value):
            self.traits.hooks(hooks)
            self.push(hooks, node, "._backward_hooks", HOOK)
        shape = self.shape(type(value))
        if self.addresses.get(id(value)):
            self._parts(value, node, shape)
        else:  # a wrapper of tensors: they have its name
            for name, one in shape.attributes(value)[1]:
                if tensors.is_tensor(type(one)):
                    self.push(one, node, "", mark)
                else:
                    self._attributes([(name, one)], node)
        graph = tensors.node(value)
        if graph is not None:
            self.graphs.append((graph, node, id(value)))
            if self._is_of_module(node):
                self.carried.add(id(value))

    # --- functions, frames and errors: names begin anew ---

    def walk_function(self, value, node):
        code = value.__code__
        for name, one in reading.cells(value) + reading.defaults(value):
            self.root(Root(name, CLOSURE, code.co_filename, code.co_firstlineno, code.co_name), one, node, CLOSURE)
        known = value.__globals__, value.__closure__, value.__defaults__, value.__kwdefaults__
        for one in reading.referents(value):
            if not any(one is part for part in known):
                self.push(one, node, "")
        self.globals(value.__globals__, code.co_filename, node)

    def globals(self, names, file, parent=-1):
        """Those of a cell, of exec or of a module that sys.modules has lost."""
        if type(names) is dict and id(names) not in self.known_globals:
            self.known_globals.add(id(names))
            self.kept.append(names)
            self.namespace(names, file, parent)

    def namespace(self, names, file, parent=-1):
        for key, one in reading.items(names):
            self.root(Root(key if reading.is_name(key) else "[]", GLOBAL, file), one, parent)

    def walk_frame(self, frame, node, mark=None, runs_in=None):
        code = frame.f_code
        if self.is_ours(code.co_filename):
            return
        found = reading.locals_of(frame, self.is_traced)
        if found is None:
            self.unread_frames += 1
        for key, one in (found or {}).items():
            root = Root(key if reading.is_name(key) else "[]", LOCAL, code.co_filename, frame.f_lineno, code.co_name,
                        runs_in)
            self.root(root, one, node, mark)
        self.globals(frame.f_globals, code.co_filename)

    def walk_traceback(self, value, node):
        while value is not None:
            frame = value.tb_frame
            if id(frame) not in self.seen:
                self.seen[id(frame)] = node
                self.kept.append(frame)
                self.walk_frame(frame, node, TRACEBACK)
            value = value.tb_next

    def walk_exception(self, value, node):
        for member in _OF_ERRORS:
            self.push(member.__get__(value), node, "")
        self._parts(value, node, self.shape(type(value)))

    def walk_generator(self, value, node):
        kind = type(value)
        prefix = {types.GeneratorType: "gi", types.CoroutineType: "cr", types.AsyncGeneratorType: "ag"}[kind]
        names = reading.dict_of_type(kind)
        frame = names[prefix + "_frame"].__get__(value)
        if frame is not None and id(frame) not in self.seen:
            self.seen[id(frame)] = node
            self.kept.append(frame)
            self.walk_frame(frame, node, GENERATOR)

    # --- graphs ---

    def walk_node(self, value, node):
        """A node of a graph that Python holds by itself."""
        self.graphs.append((self.tensors.node_of(value), node, 0))

    def walk_graph(self, first, variable):
        """What nobody had claimed before is the variable's: the first variable that has a node keeps it."""
        if not self.follows_graphs:
            return
        waiting = [first]
        holder, count = None, 0
        while waiting:
            node = waiting.pop()
            key = node if type(node) is int else id(node)
            if key in self.in_graph:
                continue
            self.in_graph.add(key)
            if holder is None:
                holder = self._node(variable, "", GRAPH)
            count += 1
            self.until_check -= 1
            if not self.until_check:
                self.check()
            self.seen.setdefault(key, holder)
            self.kept.append(node)
            self._saved_in_graph(node, holder)
            waiting.extend(self.tensors.next_nodes(node))
        if holder is not None:
            self.nodes_of_graph[holder] = count

    @property
    def known(self):
        """What a node that is read may hold."""
        if self.known_objects is None:
            self.known_objects = reading.Known(self.every or gc.get_objects(), self.tensors.is_own_node)
        return self.known_objects

    def _saved_in_graph(self, node, holder):
        self._given_to(node, holder)
        for saved in self.tensors.saved_by(node, self.known):
            if type(saved) is Unasked:
                self._claim_of_graph(saved.address, holder)
            elif self.tensors.is_tensor(type(saved)):
                self._claim_saved(saved, holder)
            else:
                self._given_to(saved, holder)
                self.push(saved, holder, "", GRAPH)

    def _given_to(self, node, holder):
        """By a program to a node of its own."""
        if self.tensors.is_own_node(type(node)):
            for name, one in self.shape(type(node)).attributes(node)[1]:
                self.push(one, holder, "." + name if reading.is_name(name) else "[]", GRAPH)

    def _claim_of_graph(self, address, holder):
        """A parameter tells in which mode its module is."""
        known = next((node for _, node in self.claims.get(self.blocks.at(address), ()) if self.marks[node] == PARAMETER), None)
        if known is not None:
            self.modes_of_graph.setdefault(holder, set()).add(self.traits.is_training(self, known))
        self.claim(address, holder, is_graph=True)

    def _claim_saved(self, tensor, holder):
        address = self.tensors.address(tensor)
        if address:
            self._claim_of_graph(address, holder)
            return
        for part in self.tensors.inner(tensor):
            self._claim_saved(part, holder)
        for _, one in self.shape(type(tensor)).attributes(tensor)[1]:
            if self.tensors.is_tensor(type(one)):
                self._claim_saved(one, holder)

    # --- the walk ---

    def drain_objects(self):
        """All that was pushed but optimizers and graphs."""
        while self.queue:
            how, value, node = self.queue.popleft()
            how(value, node)

    def drain(self):
        """All that was pushed, then the graphs of the tensors among it."""
        while True:
            waiting = self.queue or self.last
            if waiting:
                how, value, node = waiting.popleft()
                how(value, node)
            elif self.graphs:
                self._carried_first()
                self.walk_graph(*self.graphs.popleft()[:2])
            else:
                return

    def _carried_first(self):
        """Of variables that share a graph, the one that goes on to the next pass keeps it: a state, and no last output."""
        if self.carried:
            self.graphs = collections.deque(sorted(self.graphs, key=lambda one: one[2] not in self.carried))
            self.carried.clear()

    def _is_of_module(self, node):
        """A state that a module has beside its parameters: its next call goes on with it."""
        return any(one in self.traits.modules for one in self.chain(self.parents[node]))

    def hide(self, *ours):
        """They are no part of the program."""
        for one in ours:
            self.seen.setdefault(id(one), -1)

    def is_nearly_all_named(self):
        """Libraries hold most objects and hardly ever a tensor: they are asked where more than a little has no name."""
        live = range(len(self.blocks))
        left = sum(self.blocks.bytes_of(index) for index in live
                   if index not in self.claims and not self.blocks.is_explained(index))
        return left * LITTLE <= sum(self.blocks.bytes_of(index) for index in live)

    def forget(self):
        """Lets go of all objects; it holds itself by its methods."""
        vars(self.traits).clear()
        vars(self).clear()

    # --- names ---

    def chain(self, node):
        """The node and all above it."""
        while node >= 0:
            yield node
            node = self.parents[node]

    def root_node(self, node):
        return next((one for one in self.chain(node) if type(self.labels[one]) is Root), -1)

    def root_of(self, node):
        found = self.root_node(node)
        return None if found < 0 else self.labels[found]

    def error_of(self, node):
        """What holds the error whose frames lead to it; -1: no error's do."""
        frames = [one for one in self.chain(node) if self.marks[one] == TRACEBACK and type(self.labels[one]) is Root]
        return self.parents[frames[-1]] if frames else -1

    def path_of(self, node):
        """The labels after the variable: ".layers.*.weight"."""
        path = []
        while node >= 0 and type(self.labels[node]) is not Root:
            label = self.labels[node]
            path.append("[%s]" % self._of(label[1]) if type(label) is tuple else label)
            node = self.parents[node]
        return "".join(reversed(path))

    def _of(self, key):
        """What stands for a tensor that is a key: its own name, where it is a parameter."""
        node = self.seen.get(key)
        if node is None or self.marks[node] != PARAMETER:
            return ""
        return self.path_of(node).lstrip(".")

    def name_of(self, node):
        name = self.variable_of(self.root_of(node)) + self._shown_path(node)
        return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME // 2] + "…" + name[-LONGEST_NAME // 2:]

    def variable_of(self, root):
        """As it is shown."""
        if root is None or self.redaction is None:
            return "" if root is None else root.name
        return self.redaction.root(root.kind, root.name)

    def _shown_path(self, node):
        path = self.path_of(node)
        return path if self.redaction is None else self.redaction.path(path)

    def kind_of(self, node):
        """What kind of holder it is: a cycle, whatever hangs on it; by role, by what holds its frame, or by its last label."""
        root = self.root_of(node)
        if root is not None and root.kind == CYCLE:
            return CYCLE
        mark = self._mark_of(node)
        if mark in BY_ROLE or mark == GRAPH:
            return mark
        at = node
        while at >= 0:
            if self.marks[at] in (HOOK, TRACEBACK, GENERATOR):
                return self.marks[at]
            at = self.parents[at]
        path = self.path_of(node)
        if path:
            return ELEMENT if path.endswith("]") else ATTRIBUTE
        return LOCAL if root is None else root.kind


def _kind_of(module, name):
    """A test of types for a class of PyTorch's, where the program has imported it."""
    found = sys.modules.get(module)
    wanted = None if found is None else reading.module_dict(found).get(name)
    return lambda kind: wanted is not None and reading.is_kind(kind, wanted)


_OF_ERRORS = [BaseException.__dict__[name] for name in ("__traceback__", "__cause__", "__context__", "args")]
