"""Who holds the memory at new peaks (`--names peak`): when that is looked at.

    start(torch, names, at_operations)  # from CUDA's first use on; names: holders.Names, which keeps the newest peak's
    made(tensors)                       # on a hollow device, after an operation: of what it made

A peak is new where an eighth more is allocated than at the last look, or a fifth, once all looks take a twentieth of the
run. They take a tenth at most: a peak that comes again is found in its turn. It is asked for where what is live has names:
where a backward pass begins and ends, and at the end of an optimizer's step; on a hollow device at each operation's end, else
at that of an outermost module's call without gradients, as in an evaluation, until something is compiled. What a call with
gradients made hangs on its result, which has no name yet.
Thread rule: any thread, with the GIL held.
"""

import os
import sys
import threading
import time

from . import holders, imports, observer
from .unseen import during

SMALL_STEP, LARGE_STEP = 8, 5  # grown by one in so many bytes
LEAST = 32 << 20  # bytes
COMPILES = "torch._dynamo.repro.after_dynamo"  # imported when something is compiled; the rest comes with each optimizer
ASKED_AGAIN = 0.001  # seconds after a look that had to wait

_here = None  # the process's HeldPeaks; a forked child has its parent's until it uses CUDA itself


def start(torch, names, at_operations):
    """`at_operations`: `made` is told of the program's."""
    global _here
    if _here is None:
        _here = HeldPeaks(torch, names)
        _here.install(at_operations)
    else:
        _here.begin(names)


def made(tensors):
    if _here is not None:
        _here.made(tensors)


class HeldPeaks(object):
    def __init__(self, torch, names):
        self.torch = torch
        self.inside = threading.local()
        self.is_on = True
        self.begin(names)

    def begin(self, names):
        """In this process."""
        self.names, self.pid = names, os.getpid()
        self.walked = 0  # bytes that were allocated at the last look
        self.known = self.since = 0  # bytes when it was last asked, and of what operations have made since
        self.not_before = 0.0

    def made(self, tensors):
        """PyTorch is asked only where these may make a new peak: that costs half as much as an operation."""
        if not self.is_on or not tensors:
            return
        try:
            for tensor in tensors:
                self.since += tensor.numel() * tensor.element_size()
            if self.known + self.since >= self._wanted():
                self.look()
        except Exception as error:
            self.stop(error)

    def _wanted(self, step=SMALL_STEP):
        return self.walked + max(self.walked // step, LEAST)

    def _allocated(self):
        memory = self.torch.cuda.memory
        told = [memory.memory_stats_as_nested_dict(device) for device in range(self.torch.cuda.device_count())]
        return sum(one["allocated_bytes"]["all"]["current"] for one in told if one)

    def look(self):
        """Nothing comes out: the program goes on."""
        now = time.monotonic()
        if not self.is_on or now < self.not_before or self.pid != os.getpid():
            return
        try:
            if self.torch.cuda.is_current_stream_capturing():
                return
            self.known, self.since = self._allocated(), 0
            if self.known < self._wanted():
                return
            if self._may_take():
                self._take()
            else:
                self.not_before = now + ASKED_AGAIN
        except Exception as error:
            self.stop(error)

    def _may_take(self):
        """A run has spent little of its share, or the step is a large one."""
        if self.names.has_time_for_peak(2 * holders.SHARE):
            return True
        return self.known >= self._wanted(LARGE_STEP) and self.names.has_time_for_peak(holders.SHARE)

    def _take(self):
        held = observer.collector.hold()
        try:
            with observer.imports_nothing(self.torch), observer.not_compiled(self.torch):
                if self.names.look_at_peak(self.torch, lambda: observer.blocks_now(self.torch)):
                    self.walked = self.known
        finally:
            observer.collector.release(held)

    def stop(self, error):
        self.is_on = False
        self.names.complain(observer.named(error))

    # --- where it is asked ---

    def install(self, at_operations):
        try:
            self._watch(self.torch, at_operations)
        except Exception as error:
            self.stop(error)

    def _watch(self, torch, at_operations):
        observer.never_compile(torch, *(one for one in vars(HeldPeaks).values() if hasattr(one, "__code__")))
        optimizers = sys.modules.get("torch.optim.optimizer")
        if hasattr(optimizers, "register_optimizer_step_post_hook"):
            optimizers.register_optimizer_step_post_hook(self.stepped)
        engine = type(torch.autograd.Variable._execution_engine)

        class Engine(engine):
            run_backward = during(engine.run_backward, self.goes_backward)

        torch.autograd.Variable._execution_engine = Engine()
        if not at_operations:
            self._watch_modules(torch.nn.Module)

    def _watch_modules(self, module):
        """Until something is compiled: torch._dynamo would not compile what calls a module."""
        compiles = self._imported_to_compile()
        if compiles in sys.modules:
            return
        original = module.__call__
        ours = module.__call__ = during(original, self.called)

        def put_back(_):
            if vars(module).get("__call__") is ours:
                module.__call__ = original

        imports.after(compiles, put_back)

    def _imported_to_compile(self):
        """Older releases have no such part: there it is the whole."""
        folder = os.path.dirname(os.path.dirname(getattr(self.torch, "__file__", "")))
        return COMPILES if os.path.exists(os.path.join(folder, *COMPILES.split(".")) + ".py") else "torch._dynamo"

    def stepped(self, *_):
        self.look()

    def goes_backward(self, _):
        self.look()
        return self.look

    def called(self, _):
        if getattr(self.inside, "is_in_call", False):
            return None
        self.inside.is_in_call = True
        return self.returned

    def returned(self):
        self.inside.is_in_call = False
        if not self.torch.is_grad_enabled():
            self.look()
