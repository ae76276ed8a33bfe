"""What a step computes and moves, forward and backward and in the optimizer.

    counter = Counter(program)     # the run ends after its second step
    counter.work                   # of the last step that was counted; None: none was

    operations         floating-point ones of matrix products, convolutions and attention
    narrow_operations  those of them in 16 bits
    memory_bytes       that its kernels read and write of the device's memory, each tensor once a kernel
    bus_bytes          between the host and the device

A run that counts is for nothing else: the counter keeps tensors alive, so that its peak is none of the program's.
Thread rule: the thread that trains, and those that go backward for it.
"""

MOST_STEPS = 2  # the first may be another one
KEYS = ("operations", "narrow_operations", "memory_bytes", "bus_bytes")
COPIES = ("aten::_to_copy", "aten::copy_", "aten::_local_scalar_dense")
GATHERS = ("aten::embedding", "aten::index_select", "aten::index", "aten::gather")  # they read what they write
WITHOUT_KERNEL = ("aten::empty", "aten::new_empty")


class Counter(object):
    def __init__(self, program):
        self.program = program
        self.flops = self.traffic = self.work = None
        self.before = dict.fromkeys(KEYS, 0)

    def begin(self):
        """Before the first call that trains."""
        if self.flops is None:
            from torch.utils.flop_counter import FlopCounterMode

            self.flops = FlopCounterMode(display=False)
            self.flops.__enter__()
            self.traffic = traffic_of(self.program.torch, self.flops)
            self.traffic.__enter__()

    def stepped(self):
        now = dict(self.traffic.totals)
        self.work = {key: now[key] - self.before[key] for key in KEYS}
        self.before = now
        if self.program.steps == MOST_STEPS:
            self.program.stop()


def traffic_of(torch, flops):
    """A mode inside the one that counts operations: it sees each kernel first, and asks that one what it added."""
    from torch.utils._python_dispatch import TorchDispatchMode

    narrow = (torch.float16, torch.bfloat16)

    class Traffic(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.totals = dict.fromkeys(KEYS, 0)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            before = flops.get_total_flops()
            out = func(*args, **(kwargs or {}))
            operations = flops.get_total_flops() - before
            self.totals["operations"] += operations
            if operations and any(one.dtype in narrow for one in tensors_in(torch, out)):
                self.totals["narrow_operations"] += operations
            schema = getattr(func, "_schema", None)
            if schema is not None:
                self.moved(schema, tensors_of(torch, schema, args, kwargs or {}), tensors_in(torch, out))
            return out

        def moved(self, schema, given, out):
            """`given`: (tensors, whether they are written) of each argument."""
            shown = [one.alias_info for one in schema.returns]
            if any(one is not None and not one.is_write for one in shown) or schema.name.startswith(WITHOUT_KERNEL):
                return  # a view, or memory that nothing is written to
            made = out if not any(shown) else []
            read = made if schema.name in GATHERS else [one for tensors, _ in given for one in tensors]
            written = made + [one for tensors, is_written in given if is_written for one in tensors]
            self.totals["memory_bytes"] += sum(size_of(one) for one in read + written if one.device.type != "cpu")
            if schema.name in COPIES and len({one.device.type for one in read + written}) > 1:
                self.totals["bus_bytes"] += max(size_of(one) for one in written)
            elif schema.name == COPIES[-1]:
                self.totals["bus_bytes"] += sum(size_of(one) for one in read if one.device.type != "cpu")

    return Traffic()


def size_of(tensor):
    return tensor.numel() * tensor.element_size()


def tensors_in(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for part in value for one in tensors_in(torch, part)] if isinstance(value, (list, tuple)) else []


def tensors_of(torch, schema, args, kwargs):
    out = []
    for at, argument in enumerate(schema.arguments):
        value = args[at] if at < len(args) else kwargs.get(argument.name)
        is_written = argument.alias_info is not None and argument.alias_info.is_write
        out.append((tensors_in(torch, value), is_written))
    return out
