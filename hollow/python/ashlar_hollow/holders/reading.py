"""What an object holds, read by C alone: no attribute of an unknown object is asked for.

A program's classes may do anything in __getattr__, __getattribute__, __eq__, __hash__, __repr__, __iter__ or __class__.
So a type is read by `type.__dict__` descriptors, an instance by its dictionary where the type's own slot is the plain
one, its slots by their descriptors, a container by the methods of Python's own class, and all else by the referents that
the garbage collector visits. Types are told apart by `id`: their metaclass may have a hash of its own.

Python up to 3.12 keeps the dictionary that `frame.f_locals` makes, and so what it holds: it is emptied again.
"""

import collections
import dis
import functools
import gc
import sys
import types
import weakref

KEY_LENGTH = 64
MANY = 8

_dict_of_type = type.__dict__["__dict__"].__get__
_mro_of_type = type.__dict__["__mro__"].__get__
_name_of_type = type.__dict__["__name__"].__get__
_flags_of_type = type.__dict__["__flags__"].__get__
_dict_of_module = types.ModuleType.__dict__["__dict__"].__get__
_HEAP_TYPE = 1 << 9
_OPTIMIZED = 1  # of a code's flags: its variables are no dictionary's
_KEEPS_LOCALS = sys.version_info < (3, 13)
# A function that asks for its own locals may keep the one dictionary that there is of them.
_READS_LOCALS = ("locals", "vars", "dir", "eval", "exec")
_READS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")

NOT_WALKED = (types.ModuleType, weakref.ReferenceType, types.CodeType, property)
SEQUENCES = (list, tuple, set, frozenset, collections.deque)


def mro(kind):
    return _mro_of_type(kind)


def is_kind(kind, wanted):
    """issubclass, without the metaclass."""
    return any(one is wanted for one in _mro_of_type(kind))


def is_type(value):
    return is_kind(type(value), type)


def dict_of_type(kind):
    return _dict_of_type(kind)


def type_name(kind):
    return _name_of_type(kind)


def module_of_type(kind):
    found = _dict_of_type(kind).get("__module__")
    return found if type(found) is str else ""


def is_heap_type(kind):
    return bool(_flags_of_type(kind) & _HEAP_TYPE)


def module_dict(module):
    """A module's globals; None where it is none: programs put anything into sys.modules."""
    return _dict_of_module(module) if is_kind(type(module), types.ModuleType) else None


def is_name(key):
    return type(key) is str and len(key) <= KEY_LENGTH and key.isidentifier()


def items(dictionary):
    """Of a dict or of a class made of it. One call of C: no other thread changes it meanwhile."""
    return list(dict.items(dictionary))


def labelled(dictionary):
    """[(label, key, value)] of a dictionary: ".key", or "[]" for values of a kind of which more than MANY have names, since
    those are a program's data as the places of a list are. None: the key is no name."""
    pairs, many = items(dictionary), ()
    if len(pairs) > MANY:
        counts = collections.Counter(id(type(one)) for key, one in pairs if is_name(key))
        many = [kind for kind, count in counts.items() if count > MANY]
    return [((None if not is_name(key) else "[]" if id(type(one)) in many else "." + key), key, one) for key, one in pairs]


class Shape(object):
    """How instances of a type are read; one of each type."""

    __slots__ = ("kind", "container", "dictionary", "slots", "fields")

    def __init__(self, kind):
        self.kind = kind  # keeps the type, and so its id
        self.container = self.dictionary = self.fields = None
        self.slots = []
        for one in _mro_of_type(kind):
            if one is object:
                continue
            names = _dict_of_type(one)
            if self.container is None and (one is dict or any(one is known for known in SEQUENCES)):
                self.container = one
            if not is_heap_type(one):
                continue
            for name, member in list(names.items()):
                if type(name) is not str:
                    continue
                if type(member) is types.MemberDescriptorType:
                    self.slots.append((name, member))
                elif name == "__dict__" and self.dictionary is None:
                    self.dictionary = member
        if type(self.dictionary) is not types.GetSetDescriptorType:
            self.dictionary = None
        if self.container is tuple:
            fields = _dict_of_type(kind).get("_fields")
            self.fields = fields if type(fields) is tuple else None

    def attributes(self, value):
        """The instance's dictionary, or None, and [(name, value)] of it and of the slots."""
        found, own = [], None
        if self.dictionary is not None:
            try:
                own = self.dictionary.__get__(value, self.kind)
                if type(own) is dict:
                    found.extend(own.items())
            except Exception:
                pass
        for name, member in self.slots:
            try:
                found.append((name, member.__get__(value, self.kind)))
            except AttributeError:
                pass
        return own, found

    def elements(self, value):
        """[(field or None, value)] of a sequence."""
        found = list(self.container.__iter__(value))
        if self.fields is not None and len(self.fields) == len(found):
            return list(zip(self.fields, found))
        return [(None, one) for one in found]


def is_cache(kind):
    return kind is functools._lru_cache_wrapper


def parameters_of(groups):
    """The parameters of an optimizer's groups."""
    found = []
    for group in list.__iter__(groups) if type(groups) is list else ():
        parameters = dict.get(group, "params") if is_kind(type(group), dict) else None
        if type(parameters) in (list, tuple):
            found.extend(parameters)
    return found


def one_of(kind, known):
    return any(is_kind(kind, one) for one in known)


# --- frames ---


def locals_of(frame, is_traced):
    """{name: value}, or None where reading them could change what the program holds."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        names = frame.f_locals
        if names is frame.f_globals:
            return {}
        return dict(names) if type(names) is dict else None
    if not _KEEPS_LOCALS:
        return dict(frame.f_locals)
    if is_traced or _asks_for_locals(code):
        return None
    kept = frame.f_locals
    found = dict(kept)
    kept.clear()
    return found


def _asks_for_locals(code):
    """Whether it may call one of those functions; `model.eval()` has the name alone."""
    if not any(name in code.co_names for name in _READS_LOCALS):
        return False
    return any(one.opname in _READS_GLOBAL and one.argval in _READS_LOCALS for one in dis.get_instructions(code))


def defaults(function):
    """(name, value) of the arguments of a function that have a default."""
    code, given = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(given):code.co_argcount]
    return list(zip(names, given)) + list((function.__kwdefaults__ or {}).items())


def cells(function):
    """[(variable, value)] of what a function closes over."""
    found = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            pass  # no value yet
    return found


def finalizers():
    """The table of weakref.finalize: it holds what is given to them."""
    return weakref.finalize.__dict__.get("_registry") or {}


referents = gc.get_referents


class Known(object):
    """The objects that the collector knows, by id; it holds none of them beside the list that it is given."""

    MOST = 4000000

    def __init__(self, every, is_own_node):
        self.every = every
        is_few = len(every) <= self.MOST
        self.places = {id(one): place for place, one in enumerate(every) if is_few or is_own_node(type(one))}

    def __contains__(self, key):
        return key in self.places

    def __getitem__(self, key):
        return self.every[self.places[key]]
