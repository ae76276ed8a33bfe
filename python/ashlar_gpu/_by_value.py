"""Functions that no other process can import, as bytes: those of a notebook, of a script, lambdas, closures.

    data = dumps((function, arguments, keywords))     # here
    function, arguments, keywords = loads(data)       # in a process of the same interpreter, with the same sys.path

pickle carries what is imported by its name. What is defined in __main__, or inside a function, has no name there: its
code goes along, with the globals that the code uses, its closure and its defaults; a class with its bases and members.
What pickle itself cannot carry (a lock, an open file, a generator) is an Error that names the type.
"""

import builtins
import dataclasses
import importlib
import io
import marshal
import pickle
import sys
import types
from typing import Any, Callable, Dict, Iterable, Optional, Set, Tuple

from ashlar_gpu._errors import Error

# What a class gets by itself.
MADE_BY_CLASS = ("__dict__", "__weakref__", "__classcell__", "__firstlineno__", "__static_attributes__", "_abc_impl",
                 "__annotate__", "__annotate_func__")
MAIN: Dict[str, Any] = {"__builtins__": builtins, "__name__": "__main__"}  # of the functions that are loaded here
_EMPTY = "__ashlar_empty_cell__"


def dumps(value: Any) -> bytes:
    out = io.BytesIO()
    try:
        _Pickler(out, protocol=4).dump(value)
    except Error:
        raise
    except Exception as error:
        raise Error(f"this cannot be carried into a process of its own ({error}): make it inside the function, or give "
                    "a command line") from None
    return out.getvalue()


def loads(data: bytes) -> Any:
    return pickle.loads(data)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType):
            return _function_as_parts(value) if _is_nameless(value) else NotImplemented
        if isinstance(value, type):
            return _class_as_parts(value) if _is_nameless(value) else NotImplemented
        simple = SIMPLE.get(type(value))
        return NotImplemented if simple is None else simple(value)


def _sentinel(value: Any) -> Any:
    """What dataclasses compare by identity."""
    (name,) = [name for name, one in vars(dataclasses).items() if one is value][:1] or [""]
    return (getattr, (dataclasses, name)) if name else NotImplemented


# How values are taken apart that pickle does not know.
SIMPLE: Dict[type, Callable[[Any], Any]] = {
    types.ModuleType: lambda value: (importlib.import_module, (value.__name__,)),
    types.CellType: lambda value: (_new_cell, (), _contents(value), None, None, _fill_cell),
    types.MappingProxyType: lambda value: (_new_proxy, (dict(value),)),
    staticmethod: lambda value: (staticmethod, (value.__func__,)),
    classmethod: lambda value: (classmethod, (value.__func__,)),
    property: lambda value: (property, (value.fget, value.fset, value.fdel, value.__doc__)),
    type(dataclasses.MISSING): _sentinel,
    type(getattr(dataclasses, "_FIELD")): _sentinel,
}


def _new_proxy(value: Dict[Any, Any]) -> Any:
    return types.MappingProxyType(value)


def _is_nameless(value: Any) -> bool:
    """Whether no other process can import it."""
    return value.__module__ in ("__main__", "__mp_main__") or "<" in value.__qualname__


def _names_in(code: types.CodeType) -> Set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names_in(constant)
    return names


def used_globals(code: types.CodeType, namespace: Dict[str, Any]) -> Dict[str, Any]:
    return {name: namespace[name] for name in sorted(_names_in(code)) if name in namespace}


def _function_as_parts(function: types.FunctionType) -> Tuple[Any, ...]:
    cells = None if function.__closure__ is None else len(function.__closure__)
    home = None if _is_main(function.__module__) else function.__module__
    state = {
        "globals": used_globals(function.__code__, function.__globals__) if home is None else {},
        "closure": [_contents(cell) for cell in function.__closure__ or ()],
        "defaults": function.__defaults__,
        "keywords": function.__kwdefaults__,
        "attributes": function.__dict__,
        "module": function.__module__,
        "qualname": function.__qualname__,
    }
    made = (marshal.dumps(function.__code__), function.__name__, cells, home)
    return _new_function, made, state, None, None, _fill_function


def _is_main(module: Any) -> bool:
    return module in ("__main__", "__mp_main__") or module not in sys.modules


def _new_function(code: bytes, name: str, cells: Optional[int], home: Optional[str]) -> types.FunctionType:
    """Functions of __main__ share one namespace, as they did."""
    namespace = MAIN if home is None else vars(importlib.import_module(home))
    closure = None if cells is None else tuple(_new_cell() for _ in range(cells))
    return types.FunctionType(marshal.loads(code), namespace, name, None, closure)


def _fill_function(function: types.FunctionType, state: Dict[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    for cell, contents in zip(function.__closure__ or (), state["closure"]):
        _fill_cell(cell, contents)
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["keywords"]
    function.__dict__.update(state["attributes"])
    function.__module__, function.__qualname__ = state["module"], state["qualname"]


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return _EMPTY


def _new_cell() -> Any:
    return types.CellType()


def _fill_cell(cell: Any, contents: Any) -> None:
    if not (isinstance(contents, str) and contents == _EMPTY):
        cell.cell_contents = contents


def _class_as_parts(kind: type) -> Tuple[Any, ...]:
    members = {key: value for key, value in vars(kind).items() if key not in MADE_BY_CLASS}
    slots = [members.get("__slots__", ())] if isinstance(members.get("__slots__"), str) else members.get("__slots__", ())
    for name in slots:  # their descriptors are made anew
        members.pop(name, None)
    made = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    if "__slots__" in members:
        made["__slots__"] = members.pop("__slots__")
    return _new_class, (type(kind), kind.__name__, kind.__bases__, made), members, None, None, _fill_class


def _new_class(meta: Any, name: str, bases: Iterable[type], members: Dict[str, Any]) -> type:
    return types.new_class(name, tuple(bases), {"metaclass": meta}, lambda body: body.update(members))


def _fill_class(kind: type, members: Dict[str, Any]) -> None:
    for key, value in members.items():
        try:
            setattr(kind, key, value)
        except (AttributeError, TypeError):
            pass  # __doc__ of a class with slots, and its like
