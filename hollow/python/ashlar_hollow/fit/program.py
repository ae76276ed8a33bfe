"""The program under way: its calls that a change needs to know of, and where it is: steps, phases, peaks.

    program = Program(torch, names=["half-batch"])     # or names=None: all changes look on
    program.install(after)                             # after(module name, call): a call after a module's import

A step is one of the optimizer that stepped first; in a program without one, a call of an outermost module. A call of an outermost module trains where gradients are on and the module
is in training mode. Nothing that is done here ends the program: what fails is said in a line, once.
Thread rule: any thread; the place where a program is, is that of the thread that trains.
"""

import contextlib
import inspect
import sys
import threading
import weakref

from . import accumulation, engine, held, hooks, lines, samples, table

KEYS = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
REQUESTED = ("allocation.all.allocated", "allocated_bytes.all.allocated")
MOST_REQUESTS = 10000
MOST_BYTES = 1 << 20  # of a tensor whose values are looked at


class Program(object):
    def __init__(self, torch, names=None, stop_after=0, has_ample_room=False):
        self.torch = torch
        self.engine = engine.Engine(self, has_ample_room)
        self.changes = table.make(self, names)
        self.stop_after = stop_after
        self.stopped = None  # called before this ends the run
        self.parts = accumulation.Parts(self)
        self.inside = threading.local()
        self.goes_backward = False
        self.lead = None  # the optimizer whose steps are counted, by id
        self.steps = 0
        self.calls = 0  # of outermost modules, before there is a step
        self.is_trained = False  # an optimizer was made, or something went backward: a step is the optimizer's
        self.backwards = 0  # since the last step
        self.most_backwards = 0  # of one step
        self.trains = None  # train() or eval(), whichever was last
        self.has_trainer = False  # of transformers
        self.has_lightning = False
        self.accelerators = []
        self.modules = set()  # by id
        self.phases = []  # (what was new, steps that were done)
        self.known = set()
        self.longest = 0
        self.longest_tokens = 0  # of the batches that it trains with
        self.shapes = set()  # of these: (whether samples lie one behind the other, the shape of one or of all)
        self.loads = False  # a DataLoader feeds the training
        self.loaders = weakref.WeakKeyDictionary()  # -> the place where it was made
        self.readers = {}  # id of the samples -> the places where loaders of them were made
        self.peaks = []  # (steps done, allocated, reserved), where one grew
        self.requests = []  # (count, bytes) of all so far, at each step, of the first MOST_REQUESTS
        self.imported = None  # in a run that tells what it has imported by its first call: look() and told()
        self.draws = None  # in a run that keeps or leaves out large random fills
        self.held = held.Held(torch)
        self.failed_step = None
        self.knows = None  # of a hollow device: whether what a tensor holds was really computed
        self.counter = None  # of operations, in a run that counts them
        self.said = set()

    # --- what came new, and how much memory it took ---

    def new_phase(self, what):
        if what not in self.known:
            self.known.add(what)
            self.phases.append((what, self.steps))

    def look_at_memory(self, done):
        """The peaks so far, the greatest of all devices. `done`: steps that are behind it."""
        highest, requested, ooms = [0, 0], [0, 0], 0
        try:
            for device in range(self.torch.cuda.device_count() if self.torch.cuda.is_initialized() else 0):
                stats = self.torch.cuda.memory_stats(device)
                highest = [max(high, stats.get(key, 0)) for high, key in zip(highest, KEYS)]
                requested = [count + stats.get(key, 0) for count, key in zip(requested, REQUESTED)]
                ooms += stats.get("num_ooms", 0)
        except Exception:
            return  # an allocator without statistics
        if len(self.requests) < MOST_REQUESTS:
            self.requests.append(requested)
        last = self.peaks[-1][1:] if self.peaks else (0, 0)
        highest = tuple(max(one, before) for one, before in zip(highest, last))
        if highest != last:
            self.peaks.append((done,) + highest)
        if ooms and self.failed_step is None:
            self.failed_step = done

    def guarded(self, call, *args, **kwargs):
        try:
            return call(*args, **kwargs)
        except Exception as error:
            name = getattr(call, "__qualname__", "?")
            if name not in self.said:
                self.said.add(name)
                sys.stderr.write("ashlar: fit: %s: %s: %s\n" % (name, type(error).__name__, error))
            return None

    def tell(self, method, *args):
        for change in self.changes:
            self.guarded(getattr(change, method), *args)

    # --- the program's calls ---

    def install(self, after):
        torch = self.torch
        module, tensor, optimizer = torch.nn.Module, torch.Tensor, torch.optim.Optimizer
        hooks.put(module, "__call__", self.called)
        hooks.put(module, "train", self.mode_set)
        hooks.put(module, "to", self.moved_to)
        hooks.put(module, "cuda", self.moved_to_gpu)
        hooks.put(module, "zero_grad", self.zeroed)
        hooks.put(tensor, "backward", self.went_backward)
        hooks.put(optimizer, "__init__", self.optimizer_made)
        hooks.put(optimizer, "zero_grad", self.zeroed)
        for kind in list(vars(torch.optim).values()):
            if inspect.isclass(kind) and issubclass(kind, optimizer) and kind is not optimizer:
                self.watch_making(kind)
        hooks.put(torch.nn.functional, "cross_entropy", self.lost)
        hooks.put(torch.nn.functional, "nll_loss", self.averaged)
        hooks.put(torch.utils.data.DataLoader, "__init__", self.loader_made)
        hooks.put(torch.utils.data.DataLoader, "__iter__", self.iterated)
        hooks.put(torch.autocast, "__enter__", self.narrowed)
        hooks.put(torch, "save", self.saved)
        self.parts.install()
        after("transformers.training_args", self.watch_trainer)
        after("transformers.generation.utils", self.watch_generation)
        after("accelerate.accelerator", self.watch_accelerator)
        after("accelerate.data_loader", self.watch_accelerate)
        after("vllm.entrypoints.llm", self.engine.watch)
        after("vllm.v1.worker.gpu_worker", self.engine.watch_worker)
        for package in ("lightning.pytorch", "pytorch_lightning"):
            after(package + ".trainer.trainer", self.watch_lightning)
            after(package + ".trainer.connectors.data_connector", self.watch_lightning_loaders)

    def called(self, original, module, *args, **kwargs):
        if getattr(self.inside, "depth", 0) or self.goes_backward or _is_compiling(self.torch):
            return original(module, *args, **kwargs)
        self.inside.depth = 1
        try:
            with self.outermost(module, args, kwargs):
                output = original(module, *args, **kwargs)
        finally:
            self.inside.depth = 0
        return self.finished(module, output)

    @contextlib.contextmanager
    def outermost(self, module, args, kwargs):
        contexts = self.guarded(self.entered, module, args, kwargs) or []
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            yield

    def entered(self, module, args, kwargs):
        where = lines.where()
        trains = self.torch.is_grad_enabled() and module.training
        if trains and self.counter is not None:
            self.guarded(self.counter.begin)
        if self.imported is not None:
            self.guarded(self.imported.look)
        self.new_phase("training" if trains else "evaluation")
        self.look_at_batch([one for one in list(args) + list(kwargs.values()) if isinstance(one, self.torch.Tensor)], trains)
        if trains and id(module) not in self.modules:
            self.modules.add(id(module))
            self.tell("on_model", module, where)
        contexts = [self.guarded(change.on_call, module, trains, where) for change in self.changes]
        return [context for context in contexts if context is not None]

    def look_at_batch(self, tensors, trains):
        size = max([one.numel() for one in tensors] or [0])
        if size > self.longest:
            self.longest = size
            self.phases.append(("a larger batch", self.steps))
        if not trains or not tensors:
            return
        largest = max(tensors, key=lambda one: one.numel())
        self.shapes.add((largest.dim() == 1, largest.shape[1:] if largest.dim() > 1 else largest.shape))
        tokens = [one.shape[1] for one in tensors if one.dim() == 2 and not one.is_floating_point()]
        self.longest_tokens = max([self.longest_tokens] + tokens)

    def lengths_vary(self):
        """Where samples lie one behind the other, a last batch of fewer has another size as well: two sizes tell nothing."""
        packed = sum(is_packed for is_packed, _ in self.shapes)
        return self.loads and (packed > 2 or len(self.shapes) - packed > 1)

    def finished(self, module, output):
        if self.lead is None:
            self.calls += 1
            self.guarded(self.look_at_memory, self.calls)
        trains, where = self.torch.is_grad_enabled() and module.training, lines.where()
        for change in self.changes:
            made = self.guarded(change.on_output, module, output, trains, where)
            output = output if made is None else made
        return output

    def mode_set(self, original, module, mode=True):
        if getattr(self.inside, "mode", 0):  # a child's
            return original(module, mode)
        self.inside.mode = 1
        try:
            result = original(module, mode)
        finally:
            self.inside.mode = 0
        self.trains = mode
        self.tell("on_mode", module, mode)
        return result

    def moved_to(self, original, module, *args, **kwargs):
        device = self.guarded(lambda: self.torch._C._nn._parse_to(*args, **kwargs)[0])
        if device is not None and device.type == "cuda":
            self.tell("on_moved", module, lines.where(module))
        return original(module, *args, **kwargs)

    def moved_to_gpu(self, original, module, device=None):
        self.tell("on_moved", module, lines.where(module))
        return original(module, device)

    def averaged(self, original, *args, **kwargs):
        self.guarded(self.look_at_loss, *args, **kwargs)
        return original(*args, **kwargs)

    def look_at_loss(self, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
        is_mean = reduction == "mean" and size_average is None and reduce is None
        if is_mean and self.torch.is_grad_enabled() and isinstance(target, self.torch.Tensor):
            self.tell("on_mean", target, ignore_index)

    def values_of(self, tensor):
        """On the host, where they are known: a hollow device computes little. None where they are not, or are many."""
        if tensor.numel() * tensor.element_size() > MOST_BYTES:
            return None
        if not tensor.is_cuda:
            return tensor
        if self.knows is None or not tensor.is_contiguous() or not self.knows(tensor):
            return None
        with self.torch.utils._python_dispatch._disable_current_modes():
            return tensor.cpu()

    def lost(self, original, *args, **kwargs):
        self.guarded(self.look_at_loss, *args, **kwargs)
        where = lines.where()
        for change in self.changes:
            loss = self.guarded(change.on_loss, original, where, *args, **kwargs)
            if loss is not None:
                return loss
        return original(*args, **kwargs)

    def went_backward(self, original, loss, *args, **kwargs):
        where = lines.where()
        self.is_trained = True
        self.backwards += 1
        self.most_backwards = max(self.most_backwards, self.backwards)
        for change in self.changes:
            made = self.guarded(change.on_backward, loss, where)
            loss = loss if made is None else made
        self.goes_backward = True  # autograd runs checkpointed modules again in threads of its own
        try:
            return original(self.parts.scaled(loss), *args, **kwargs)
        finally:
            self.goes_backward = False
            self.parts.went_backward()

    def optimizer_made(self, original, optimizer, *args, **kwargs):
        result = original(optimizer, *args, **kwargs)
        self.is_trained = True
        self.guarded(self.watch_steps, type(optimizer))
        return result

    def watch_steps(self, kind):
        if not getattr(kind.step, "is_watched", False):
            hooks.put(kind, "step", self.stepped)
            kind.step.is_watched = True

    def watch_making(self, kind):
        names = [name for name in inspect.signature(kind.__init__).parameters][1:]

        def made(original, optimizer, *args, **kwargs):
            if type(optimizer) is not kind:
                return original(optimizer, *args, **kwargs)
            given = dict(zip(names, args))
            given.update(kwargs)
            self.tell("on_optimizer", optimizer, kind, given, lines.where())
            if type(optimizer) is not kind:
                return type(optimizer).__init__(optimizer, **given)
            return original(optimizer, **given)

        hooks.put(kind, "__init__", made)

    def stepped(self, original, optimizer, *args, **kwargs):
        if getattr(self.inside, "step", 0):
            return original(optimizer, *args, **kwargs)
        if self.parts.waits():
            return accumulation.closed(args, kwargs)
        self.tell("on_before_step", optimizer)
        self.inside.step = 1
        try:
            result = self.make_step(original, optimizer, args, kwargs)
        finally:
            self.inside.step = 0
        self.guarded(self.held.stepped, optimizer)
        self.parts.stepped()
        self.backwards = 0
        if self.lead is None:
            self.lead = id(optimizer)
            self.peaks, self.requests = [], []  # they were told by calls
        self.tell("on_step", optimizer, lines.where())
        if self.lead == id(optimizer):
            self.steps += 1
            self.guarded(self.look_at_memory, self.steps)
            if self.counter is not None:
                self.guarded(self.counter.stepped)
            if self.steps == self.stop_after:
                self.stop()
        return result

    def stop(self):
        """All that a longer run could show has been seen."""
        if self.stopped is not None:
            self.stopped()
        raise SystemExit(0)

    def make_step(self, original, optimizer, args, kwargs):
        for change in self.changes:
            step = getattr(change, "make_step", None)
            if step is not None and change.is_on:
                return step(original, optimizer, args, kwargs)
        return original(optimizer, *args, **kwargs)

    def zeroed(self, original, of, set_to_none=True):
        if self.parts.has_gradients():
            return None
        where = lines.where()
        for change in self.changes:
            made = self.guarded(change.on_zero_grad, set_to_none, where)
            set_to_none = set_to_none if made is None else made
        return original(of, set_to_none=set_to_none)

    def loader_made(self, original, loader, *args, **kwargs):
        result, where = original(loader, *args, **kwargs), lines.where()
        self.guarded(self.loaders.__setitem__, loader, where)
        self.readers.setdefault(id(getattr(loader, "dataset", None)), []).append(where)
        return result

    def made_by_program(self, loader):
        """Where the loader was made that a library, such as accelerate, made this one of; None where that cannot be told."""
        own = self.loaders.get(loader)
        places = {lines.key(one): one for one in self.readers.get(id(loader.dataset), [])}
        places.pop(lines.key(own), None)
        return next(iter(places.values())) if len(places) == 1 else None

    def iterated(self, original, loader):
        trains = self.torch.is_grad_enabled() and self.trains is not False
        where, has_framework = lines.where(), self.has_trainer or self.has_lightning
        if has_framework:
            self.tell("on_framework_loader", loader)
        elif trains:
            self.tell("on_loader", loader, where)
        with contextlib.ExitStack() as stack:
            for call in self.orders(loader, where) if trains else ():
                stack.enter_context(samples.ordered(loader, call))
            return original(loader) if has_framework else self.parts.iterate(original, loader, trains)

    def orders(self, loader, where):
        """What the changes make of its batches."""
        self.loads = True
        made = [self.guarded(change.on_batches, loader, where) for change in self.changes]
        return [call for call in made if call is not None]

    def narrowed(self, original, context):
        if getattr(self.inside, "depth", 0) and context._enabled and self.torch.is_grad_enabled():
            self.tell("on_autocast", lines.where())
        return original(context)

    def saved(self, original, *args, **kwargs):
        self.new_phase("a save")
        return original(*args, **kwargs)

    def watch_trainer(self, module):
        def filled(original, arguments, *args, **kwargs):
            self.has_trainer = True
            self.tell("on_trainer", arguments, lines.where(arguments))
            return original(arguments, *args, **kwargs)

        hooks.put(module.TrainingArguments, "__post_init__", filled)

    def watch_generation(self, module):
        def generated(original, model, *args, **given):
            self.tell("on_generate", model, given, lines.where(model))
            result = original(model, *args, **given)
            self.tell("on_generated", model, result)
            return result

        hooks.put(module.GenerationMixin, "generate", generated)

    def watch_accelerator(self, module):
        names = [name for name in inspect.signature(module.Accelerator.__init__).parameters][1:]

        def made(original, accelerator, *args, **kwargs):
            given = dict(zip(names, args))
            given.update(kwargs)
            self.tell("on_accelerator", given, lines.where(accelerator))
            self.accelerators.append(accelerator)
            return original(accelerator, **given)

        hooks.put(module.Accelerator, "__init__", made)

    def is_prepared(self, module):
        """By accelerate's prepare()."""
        return any(module is one for accelerator in self.accelerators for one in getattr(accelerator, "_models", ()))

    def watch_accelerate(self, module):
        self.guarded(lambda: hooks.put(module.DataLoaderShard, "__iter__", self.parts.iterate_ahead))

    def watch_lightning(self, module):
        def made(original, trainer, *args, **given):
            self.has_lightning = True
            self.tell("on_lightning", given, lines.where(trainer))
            return original(trainer, *args, **given)

        hooks.put(module.Trainer, "__init__", made)

    def watch_lightning_loaders(self, module):
        def prepared(original, connector, *args, **given):
            loader = original(connector, *args, **given)
            mode = given.get("mode", args[-1] if args else None)
            if getattr(mode, "value", mode) == "train" and isinstance(loader, self.torch.utils.data.DataLoader):
                self.tell("on_lightning_loader", loader)
            return loader

        self.guarded(lambda: hooks.put(module._DataConnector, "_prepare_dataloader", prepared))


def _is_compiling(torch):
    try:
        return torch.compiler.is_compiling()
    except AttributeError:
        return False
