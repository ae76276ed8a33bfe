"""Functions of ours whose frames nobody sees: the program's tracebacks and stacks are then as they are without us.

    class Engine(Base):
        run_backward = during(run_backward, start)  # start(engine) is called before, and what it gives after the call
    graph.replay = unseen(replay)                   # bound as a function is

While a method runs `during` ours, no frame of ours is on the stack: Python makes one only for a function in Python. Where
ours must be there, `unseen` keeps its frame out of the tracebacks of errors. Python adds the frame of each function that
an error leaves. So the function is left in good order, and the error raised again by C alone: `Call(...)` catches it in
__new__, without our frames, and gives an object of its class, so that Python looks for __init__, which is a property of
C functions only that raises it.
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


class _Step(object):
    """`value @ _Step(function)` is function(value), called by C alone; the value is a list or a tuple."""

    __slots__ = ("function",)
    __rmatmul__ = property(operator.attrgetter("function"))

    def __init__(self, function):
        self.function = function


class _Under(functools.partial):
    """A bound method that calls `after` when it goes, which is when the call ends, whether by an error or not."""

    after = None

    def __del__(self):
        if self.after is not None:
            self.after()


class _During(object):
    """A method as a class has it. What asks the class itself gets a function, which does the same with a frame."""

    def __init__(self, method, before, change):
        self.method, self.before, self.change = method, before, change

        @functools.wraps(method)
        def called(instance, *args, **kwargs):
            return self.__get__(instance)(*args, **kwargs)

        self.called = unseen(called)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self.called
        if self.change is None:
            bound = _Under(self.method, instance)
        else:
            steps = _Step(functools.partial(self._changed, instance)), _Step(self.method.__get__(instance))
            bound = _Under(functools.reduce, operator.matmul, steps)
        bound.after = self.before(instance)
        return bound

    def _changed(self, instance, argument):
        try:
            return self.change(instance, argument)
        except Exception:  # the program's call goes on, and says better what is wrong with it
            return argument


def during(method, before, change=None):
    """`before(instance)` is called as the method is bound; what it gives, a function or None, as the call ends.

    `change(instance, argument)` gives what the method is called with, where it takes one argument, a list or a tuple.
    """
    return _During(method, before, change)
