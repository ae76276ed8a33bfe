"""No values while the autograd engine runs: Python's hold on a gradient makes PyTorch clone what it would take.

What the engine wrote is forgotten afterwards: all memory that was free, and gradients that the program had cleared. The
graph itself is not looked at: that alone changes the order in which its end lets parameters go.
Thread rule: any thread; the dispatch modes are a thread's own.
"""

from .unseen import during


class Stack(object):
    """Our mode in a thread's stack of dispatch modes: always the lowest, so that the program's come and go above it."""

    def __init__(self, mode):
        self.mode = mode

    def _all(self):
        from torch.utils import _python_dispatch as dispatch

        return [dispatch._pop_mode() for _ in range(dispatch._len_torch_dispatch_stack())][::-1]

    @staticmethod
    def _push(modes):
        from torch.utils import _python_dispatch as dispatch

        for mode in modes:
            dispatch._push_mode(mode)

    def put(self):
        modes = [mode for mode in self._all() if mode is not self.mode]
        self._push([self.mode] + modes)

    def take(self):
        """Whether it was there."""
        modes = self._all()
        self._push([mode for mode in modes if mode is not self.mode])
        return self.mode in modes


class _Outermost(object):
    """Of engine runs within engine runs, in whichever threads."""

    def __init__(self):
        self.depth = 0

    def enter(self):
        self.depth += 1
        return self.depth == 1

    def leave(self):
        self.depth -= 1


def install(torch, stack, known):
    variable = torch.autograd.Variable
    outermost = _Outermost()

    def start(_):
        was_on, first, versions = stack.take(), outermost.enter(), {}
        if first:
            versions = known.versions()
            known.forget_unused()

        def end():
            outermost.leave()
            if first:
                known.forget_changed(versions)
                known.forget_unused()
            if was_on:
                stack.put()

        return end

    class Engine(type(variable._execution_engine)):
        run_backward = during(type(variable._execution_engine).run_backward, start)

    variable._execution_engine = Engine()
