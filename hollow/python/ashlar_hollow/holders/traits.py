"""What a walk learns of the objects that it meets, beside their names: modules in training, containers, optimizers, hooks.

    traits.module(node, attributes)        # as the walk meets one
    traits.of(walk, node, hooked)          # ["state_dict"], of the last object on a way

Objects are read as `reading` does: none of the program's code is run.
"""

import functools
import types

from . import reading

_OF_MODULES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
_CONTAINERS = (list, dict, set) + tuple(one for one in reading.SEQUENCES if one.__name__ == "deque")
OF_OPTIMIZER, STATE_DICT, HOOKED, IN_CALL = "of_optimizer", "state_dict", "hooked", "in_call"
PART = "part"
IN_TORCH = "in_torch"  # in a frame of PyTorch's or of a deep copy, and in no module's call: written as IN_CALL


class Traits(object):
    def __init__(self, shape, is_tensor):
        self.shape, self.is_tensor = shape, is_tensor
        self.modules = {}  # node of a module -> whether it is in training
        self.containers = {}  # node of a list or the like -> the name of its type
        self.state_dicts, self.optimizers = set(), set()  # nodes
        self.optimized = set()  # blocks of parameters that an optimizer has
        self.filled = {}  # id of what a hook's function can fill -> it
        self.known_modes = {}

    def container(self, node, kind):
        if kind is not tuple:
            self.containers[node] = reading.type_name(kind)

    def module(self, node, attributes):
        self.modules[node] = next((one for name, one in attributes if type(name) is str and name == "training"), None)

    def is_training(self, walk, node):
        """Whether the outermost module on the way to it is; None: there is none, or it does not say."""
        parent = walk.parents[node] if node >= 0 else -1
        if parent not in self.known_modes:
            found = [self.modules[one] for one in walk.chain(parent) if one in self.modules]
            self.known_modes[parent] = found[-1] if found and type(found[-1]) is bool else None
        return self.known_modes[parent]

    def container_of(self, walk, node):
        """Of an element, and of the graph that one keeps: the type of the nearest list, dictionary or cache above it."""
        while node >= 0 and walk.labels[node] == "" and walk.parents[node] >= 0:
            node = walk.parents[node]
        label = walk.labels[node]
        if type(label) is not str or not (label.endswith("]") or walk.parents[node] in self.containers):
            return None
        nearest = None
        for one in walk.chain(walk.parents[node]):
            found = self.containers.get(one)
            if found == "lru_cache" or (nearest is None and found is not None):
                nearest = found
            if nearest == "lru_cache" or (nearest is not None and walk.labels[one] != ""):
                break
        return nearest

    def of(self, walk, node, hooked):
        found = []
        if walk.parents[node] in self.state_dicts:
            found.append(STATE_DICT)
        chain = list(walk.chain(node))
        if any(one in self.optimizers for one in chain):
            found.append(OF_OPTIMIZER)
        if any(one in hooked for one in chain):
            found.append(HOOKED)
        root = walk.root_of(node)
        if root is not None and root.runs_in is not None:
            found.append(IN_CALL)
        return found

    # --- hooks ---

    def nodes_of_hooks(self, seen):
        return {seen[one] for one in self.filled if one in seen}

    def hooks(self, hooks):
        """Notes what the functions of a dictionary of hooks can fill."""
        if not reading.is_kind(type(hooks), dict):
            return
        for _, one in reading.items(hooks):
            for function in one if type(one) is tuple else (one,):
                self._hook(function)

    def _hook(self, function):
        kind = type(function)
        if kind is types.MethodType:
            self._object(function.__self__)
            function, kind = function.__func__, type(function.__func__)
        if kind is functools.partial:
            for one in reading.referents(function):
                self._value(one)
        elif kind is types.FunctionType:
            for _, one in reading.cells(function):
                self._value(one)
            for one in function.__defaults__ or ():
                self._value(one)
            for name in function.__code__.co_names:
                self._value(function.__globals__.get(name))
        elif reading.is_heap_type(kind):
            self._object(function)

    def _value(self, value):
        if reading.one_of(type(value), _CONTAINERS):
            self.filled[id(value)] = value
        elif not reading.is_type(value) and not self.is_tensor(type(value)) and reading.is_heap_type(type(value)):
            if "_parameters" not in dict(self.shape(type(value)).attributes(value)[1]):
                self._object(value)

    def _object(self, value):
        """Its own containers, but for those of PyTorch's modules."""
        for name, one in self.shape(type(value)).attributes(value)[1]:
            if name not in _OF_MODULES and not name.endswith("_hooks") and reading.one_of(type(one), _CONTAINERS):
                self.filled[id(one)] = one
