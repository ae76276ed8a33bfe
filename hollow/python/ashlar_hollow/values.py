"""Operations on small tensors have real values on a hollow device.

A dispatch mode, in each thread from CUDA's first use on. After an operation of small tensors that are all known, what
it wrote is known; after any other it is forgotten, and a small one holds made-up values: docs/internals/values.md.
Thread rule: any thread; the GIL is held.
"""

import atexit
import gc
import os
import sys
import threading
import types

from . import aliases, backward, compiled, composite, held_peaks, imports, lines, observer, operation, reads, routing, settings, unseen
from .known import Known
from .schemas import COLLECTIVE, COMPUTED, VIEW, Plans


class Values(object):
    """What the modes of all threads share."""

    def __init__(self, torch, hollow, limit):
        self.torch, self.hollow = torch, hollow
        rule = routing.rule_of(os.environ.get(settings.ROUTING))
        self.routing = routing.Routing(torch, rule) if rule else None
        self.reads = reads.start(torch, settings.given_values())
        self.limit = operation.Limit(limit, max(limit, routing.INTEGER_BYTES) if rule else limit)
        self.plans = Plans()
        self.known = Known(torch, hollow)
        self.aliases = aliases.Aliases(torch)
        self.fill, seed = settings.made_up()
        self.generator = torch.Generator()  # of its own: the program's host numbers are not drawn
        self.generator.manual_seed(seed)
        self.capturing = getattr(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False)
        self.pid = 0  # of the process in which CUDA is in use
        self.complained = False
        self.counts = {"real": 0, "other": 0, "failed": 0}

    def dispatch(self, func, args, kwargs):
        plan = self.plans[func]
        if plan.kind == VIEW:
            return func._op(*args, **kwargs)
        given = operation.Arguments(self.torch, plan, args, kwargs)
        if not (given.read or given.written or plan.has_device):
            return func._op(*args, **kwargs)  # nothing of the device
        host, read, is_told = self._begin(func, plan, given, args, kwargs)
        try:
            made = func._op(*args, **kwargs)  # its Python wrapper would hold the arguments of what fails
        except BaseException:
            args = kwargs = given = host = None
            raise
        finally:
            if is_told:
                self.hollow.read_as_is()
        try:
            made = self._after(func, plan, host, args, kwargs, given, made)
            if self.routing is not None:
                self._route(plan, args, kwargs, made)
            return made if read is None else read.given(made)
        except Exception as error:
            self.complain(func, error)
            return made

    def _begin(self, func, plan, given, args, kwargs):
        """(what a real run needs, or None; what the program is to read, or None: what is there; whether the operation
        is told what it reads inside)."""
        read = None if self.reads is None else self._read(func, plan, given, args, kwargs)
        host = self._before(func, plan, given) if read is None else None
        if plan.reads_inside and self._reads_inside(plan, given):
            self.known.forget_unused()  # its scratch memory holds nothing: what lay there before could be any number
        count = self._repeats(plan, given, host) if read is None else read.count
        if count is not None:
            self.hollow.read_as(count)
        return host, read, count is not None

    def _repeats(self, plan, given, host):
        """repeat_interleave fails where the kernel's answer, that no count is negative, is not there."""
        if plan.name != "repeat_interleave" or host is None or not given.known or not given.read:
            return None
        counts = self.aliases.of(given.read[0], aliases.extent(given.read[0]))
        return int(counts.sum()) if counts.numel() and int(counts.min()) >= 0 else None

    def _read(self, func, plan, given, args, kwargs):
        try:
            return self.reads.read(plan, given, args, kwargs)
        except Exception as error:
            self.complain(func, error)
            return None

    def _reads_inside(self, plan, given):
        masks = (self.torch.bool, self.torch.uint8)
        return not plan.name.lstrip("_").startswith("index") or any(t.dtype in masks for t in given.read[1:])

    def _after(self, func, plan, host, args, kwargs, given, made):
        outputs = operation.device_tensors(self.torch, made)
        held_peaks.made(outputs)
        if given.written:
            outputs = [t for t in outputs if not any(t is w for w in given.written)]
        if plan.perhaps_copies and any(aliases.share(self.torch, t, read) for t in outputs for read in given.read):
            return made  # a view
        if plan.kind == COLLECTIVE:  # the library moves the bytes, and tells
            for tensor in given.read + given.written + outputs:
                if tensor.numel() * tensor.element_size() <= self.limit.most:
                    self.known.keep(tensor)  # what is known of them, now or once the peers have called
        if not (given.read or given.written or outputs) or plan.kind == COLLECTIVE:
            return made
        if host is not None and operation.pairs(self.torch, outputs, self.limit) is not None:
            result = self._on_host(host, func, args, kwargs, made, given)
            if result is not None:
                return result[0]
        self._not_run(plan, given, outputs, args)
        return made

    def _route(self, plan, args, kwargs, made):
        choice = self.routing.choice(plan, args, kwargs, made)
        if choice is not None:
            indices, experts = choice
            self.aliases.of(indices, aliases.extent(indices)).copy_(experts)
            self.known.know(indices)

    def made_apart(self, whole, args, made):
        """The values of what a composed operation made, with the mode off."""
        try:
            with self.torch.no_grad():
                plan = self.plans[whole]
                given = operation.Arguments(self.torch, plan, args, {})
                self._after(whole, plan, self._before(whole, plan, given), args, {}, given, made.detach())
        except Exception as error:
            self.complain(whole, error)

    def complain(self, func, error):
        """Once: what breaks here must not break the program."""
        if not self.complained:
            self.complained = True
            sys.stderr.write("ashlar: no small values after %s: %s: %s\n" % (func, type(error).__name__, error))

    def _before(self, func, plan, given):
        """What is needed for a real run; None where there will be none."""
        try:
            return self._prepare(plan, given) if plan.is_tried() else None
        except Exception as error:
            self.complain(func, error)
            return None

    def _prepare(self, plan, given):
        read = operation.pairs(self.torch, given.read, self.limit)
        written = None if read is None else operation.pairs(self.torch, given.written, self.limit)
        if written is None or self.capturing():  # a graph's operations run at its replays
            return None
        given.known = not plan.random and all(self.known.holds(*pair) for pair in read)
        return operation.OnHost(self.torch, self.aliases, plan, read, written)

    def _on_host(self, host, func, args, kwargs, made, given):
        plan = host.plan
        try:
            result = self._run(host, func, args, kwargs, given)
            made = host.give(made, result, given.written)
        except Exception:  # no such operation on the host, or a value that only a made-up one can be
            plan.failures += 1
            self.counts["failed"] += 1
            return None
        plan.failures = 0
        self.counts["real"] += 1
        told = self.known.know if given.known else self.known.forget
        for tensor in given.written + operation.device_tensors(self.torch, made):
            told(tensor)
        if plan.overwrites and given.known:
            for tensor in given.written:
                self.known.watch(tensor)
        return (made,)

    def _run(self, host, func, args, kwargs, given):
        if not host.plan.random:
            return host.run(func, args, kwargs, given.written, None)
        default = self.torch.default_generator
        state = default.get_state()
        try:
            default.set_state(self.generator.get_state())
            return host.run(func, args, kwargs, given.written, default)
        finally:
            self.generator.set_state(default.get_state())
            default.set_state(state)

    def _not_run(self, plan, given, outputs, args):
        """Only a kernel would have written: but a plain copy is the library's, which keeps count of it."""
        self.counts["other"] += 1
        for tensor in given.written + outputs:
            if tensor.layout is not self.torch.strided:
                continue
            if plan.copies and self._is_plain_copy(tensor, args):
                if self.known.holds(tensor):
                    self.known.keep(tensor)
                continue
            self.known.forget(tensor)
        if plan.kind == COMPUTED and not self.capturing():
            for tensor in outputs:
                self._make_up(tensor)

    def _is_plain_copy(self, tensor, args):
        source = args[0] if tensor is not args[0] else args[1]
        if not operation.on_device(source):  # the host makes it contiguous and of the type first
            return tensor.is_contiguous()
        return source.dtype == tensor.dtype and source.is_contiguous() and tensor.is_contiguous()

    def _make_up(self, tensor):
        bytes_ = operation.small_bytes(self.torch, tensor, self.limit)
        if not bytes_:
            return
        alias = self.aliases.of(tensor, bytes_)
        if self.fill == "random":
            if alias.is_floating_point():
                alias.copy_(self.torch.rand(alias.shape, generator=self.generator))
            else:
                alias.copy_(self.torch.randint(0, 2, alias.shape, generator=self.generator))
        else:
            alias.fill_(1 if self.fill == "ones" else 0)


def make_mode(torch, values):
    """A mode of its own class: the base's __init_subclass__ would import torch._dynamo at the first operation."""
    from torch.utils._python_dispatch import TorchDispatchMode

    disabled, simple = torch._C._disabled_torch_dispatch_impl, torch._ops.OpOverload

    class SmallValues(TorchDispatchMode):
        supports_higher_order_operators = True

    traces = _tracing(torch)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if traces():
            return func(*args, **(kwargs or {}))
        for kind in types:
            if kind.__torch_dispatch__ is not disabled:
                return NotImplemented  # a subclass's own operations come here in their turn
        if not isinstance(func, simple):
            return func(*args, **(kwargs or {}))  # of a higher order: its parts come here
        collects = gc.isenabled()  # never in here: at the moments of the program
        gc.disable()
        try:
            return values.dispatch(func, args, kwargs or {})
        except BaseException:
            args = kwargs = None  # the traceback must not hold what the program lets go
            raise
        finally:
            if collects:
                gc.enable()

    SmallValues.__torch_dispatch__ = __torch_dispatch__
    SmallValues.ignore_compile_internals = classmethod(lambda cls: True)  # off while torch.compile traces
    observer.never_compile(torch, __torch_dispatch__, unseen.Call.__new__, unseen.Call._with.__func__)
    mode = SmallValues()
    mode.__torch_dispatch__ = types.MethodType(unseen.unseen(__torch_dispatch__), mode)
    return mode


def _tracing(torch):
    """Whether one of PyTorch's own modes is on that work below all others: of fake tensors, or of tracing."""
    keys = getattr(torch._C, "_TorchDispatchModeKey", None)
    get = getattr(torch._C, "_get_dispatch_mode", None)
    if keys is None or get is None:  # before 2.1
        return lambda: False
    known = [getattr(keys, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(keys, name)]
    return lambda: any(get(key) is not None for key in known)


def install(torch, hollow, limit):
    lines.install(torch, hollow)
    if limit <= 0 and not settings.given_values():
        return
    values = Values(torch, hollow, limit)
    stack = backward.Stack(make_mode(torch, values))
    classes = (reads.Reads, reads.Read, aliases.Aliases, operation.Arguments, operation.OnHost, Values, Known, Plans, backward.Stack)
    for module in (aliases, operation, composite, reads, unseen) + classes:
        observer.never_compile(torch, *_functions(module))

    def begin():
        try:
            values.pid = os.getpid()
            stack.put()
        except Exception as error:
            values.complain("CUDA's start", error)

    torch.cuda._lazy_call(begin)
    backward.install(torch, stack, values.known)
    compiled.install(torch, values.known)
    if values.routing is not None or values.reads is not None:
        imports.after("torch.utils.checkpoint", lambda module: routing.through_recomputation(module, stack))
    values.composed = composite.install(torch, stack, values)
    _in_threads(stack, lambda: values.pid == os.getpid())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=stack.take)
    atexit.register(_tell, values)


def _functions(holder):
    found = list(vars(holder).values())
    for item in list(found):
        if isinstance(item, type) and item.__module__ == getattr(holder, "__name__", None):
            found.extend(vars(item).values())
    return [item for item in found if hasattr(item, "__code__")]


def _in_threads(stack, is_on):
    def before(_):
        if is_on():
            stack.put()

    thread = threading.Thread
    thread._bootstrap_inner = unseen.during(thread._bootstrap_inner, before)


def _tell(values):
    """For tests and the curious: how many operations were run for real."""
    path = os.environ.get("ASHLAR_VALUES_COUNTS")
    if path and values.pid == os.getpid():
        with open(path, "w") as out:
            out.write("real=%(real)d other=%(other)d failed=%(failed)d\n" % values.counts)
