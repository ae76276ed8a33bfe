"""Functions whose frames no traceback holds: the program's tracebacks are then as they are without us.

    class Engine(Base):
        run_backward = unseen(run_backward)       # bound as a function is

Python adds the frame of each function that an error leaves. So the function is left in good order, and the error raised
again by C alone: `Call(...)` catches it in __new__, without our frames, and gives an object of its class, so that Python
looks for __init__, which is a property of C functions only that raises it.
Thread rule: any thread.
"""

import ctypes
import functools
import operator
import os
import types

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _raiser():
    """PyErr_SetObject, after which ctypes finds an error and raises it; None where Python has none."""
    try:
        raise_ = ctypes.PyDLL(None)["PyErr_SetObject"]  # of our own: ctypes.pythonapi's is the program's
    except (AttributeError, OSError):
        return None
    raise_.argtypes, raise_.restype = [ctypes.py_object, ctypes.py_object], None
    return raise_


_raise = _raiser()


def without_us(traceback):
    """The traceback from the first frame on that is not of this package."""
    while traceback is not None and os.path.abspath(traceback.tb_frame.f_code.co_filename).startswith(HERE):
        traceback = traceback.tb_next
    return traceback


class _Bound(type):
    def __get__(cls, instance, owner=None):
        return cls if instance is None else types.MethodType(cls, instance)


class Call(object, metaclass=_Bound):
    """Of each function a class of its own, with the function as `function`."""

    __slots__ = ("throw",)
    function = None

    def __new__(cls, *args, **kwargs):
        try:
            return cls.function(*args, **kwargs)
        except BaseException as error:
            args = kwargs = None  # frames within hold this one: it holds nothing of the program's then, nor the error
            return cls._with(error)

    @classmethod
    def _with(cls, error):
        out = object.__new__(cls)
        out.throw = functools.partial(_raise, type(error), error.with_traceback(without_us(error.__traceback__)))
        return out

    __init__ = property(operator.methodcaller("throw"))


def unseen(function):
    """The function itself where it cannot be done."""
    if _raise is None:
        return function
    return _Bound(function.__name__, (Call,), {"__slots__": (), "function": staticmethod(function)})
