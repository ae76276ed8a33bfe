"""Autocast around the forward pass and the loss: from the outermost module's call until backward."""

from .change import Change


class Autocast(Change):
    name, title = "autocast", "16-bit autocast"
    group = "precision"
    price = 10
    costs = "less time on tensor cores"
    alters = "precision"
    without = "no module was trained"

    def __init__(self, program, is_on):
        Change.__init__(self, program, is_on)
        self.context = None  # of the forward pass under way
        self.scaler = None

    def kind(self):
        """bf16 where the card has it."""
        torch = self.program.torch
        try:
            return "bfloat16" if torch.cuda.get_device_capability() >= (8, 0) else "float16"
        except Exception:
            return "bfloat16"

    def on_trainer(self, arguments, where):
        if arguments.bf16 or arguments.fp16:
            return self.lacks("already on: %s" % where)
        kind = "bf16" if self.kind() == "bfloat16" else "fp16"
        self.applies(where, "%s=True" % kind)
        if self.is_on:
            setattr(arguments, kind, True)
        return None

    def on_model(self, module, where):
        torch = self.program.torch
        if self.program.has_trainer:
            return None
        if torch.is_autocast_enabled():
            return self.lacks("already on: %s" % where)
        kinds = {one.dtype for one in module.parameters()}
        if not kinds & {torch.float32}:
            return self.lacks("the parameters are not float32")
        kind = self.kind()
        scaler = kind == "float16" and "scaler = torch.amp.GradScaler(): scaler.scale(loss).backward(), scaler.step(optimizer), scaler.update()"
        self.applies(where, 'with torch.autocast("cuda", dtype=torch.%s):  # around the forward pass and the loss' % kind, scaler)
        return None

    def on_call(self, module, trains, where):
        torch = self.program.torch
        if not self.is_on or not trains or self.program.has_trainer or not self.is_found or self.context is not None:
            return
        kind = self.kind()
        if kind == "float16" and self.scaler is None:
            self.scaler = torch.amp.GradScaler()
        self.context = torch.autocast("cuda", dtype=getattr(torch, kind))
        self.context.__enter__()

    def on_backward(self, loss, where):
        if self.context is not None:
            self.context.__exit__(None, None, None)
            self.context = None
        return loss if self.scaler is None else self.scaler.scale(loss)

    def make_step(self, original, optimizer, args, kwargs):
        if self.scaler is None:
            return original(optimizer, *args, **kwargs)
        result = self.scaler.step(_Bound(original, optimizer), *args, **kwargs)
        self.scaler.update()
        return result


class _Bound(object):
    """An optimizer whose step is the one under way."""

    def __init__(self, step, optimizer):
        self._step, self._optimizer = step, optimizer

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def step(self, *args, **kwargs):
        return self._step(self._optimizer, *args, **kwargs)
