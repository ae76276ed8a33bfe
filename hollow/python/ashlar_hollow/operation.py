"""One operation: run on the device as the program asked, and, where all it touches is small, for real beside it.

The device's run comes first, so that allocations are the program's own; a hollow device leaves the bytes as they were.
Tensors that are written keep a copy of their old values for the run that is real.
Thread rule: one thread an object.
"""

from . import aliases


def on_device(tensor):
    return tensor.is_cuda


class Limit(object):
    """How many bytes of a tensor are small; of integers perhaps more."""

    def __init__(self, most, most_of_integers):
        self.most, self.most_of_integers = most, most_of_integers

    def of(self, tensor):
        return self.most if tensor.is_floating_point() or tensor.is_complex() else self.most_of_integers


def small_bytes(torch, tensor, limit):
    """The bytes that a CPU tensor over the tensor would span; None where none is to be made, or there are too many."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return None
    work = tensor.numel() * tensor.element_size()
    most = limit.of(tensor)
    if work > most:
        return None
    bytes_ = work if tensor.is_contiguous() else aliases.extent(tensor)
    return bytes_ if bytes_ <= most else None


def pairs(torch, tensors, limit):
    """[(tensor, bytes)], or None where one is not small."""
    made = []
    for tensor in tensors:
        bytes_ = small_bytes(torch, tensor, limit)
        if bytes_ is None:
            return None
        made.append((tensor, bytes_))
    return made


class Arguments(object):
    """The device tensors among an operation's arguments: those whose old values it reads, and those it writes."""

    def __init__(self, torch, plan, args, kwargs):
        self.written, self.read = [], []
        shapes = not plan.reads_values
        self._take(torch.Tensor, plan.written, zip(plan.names, args), shapes)
        if kwargs:
            self._take(torch.Tensor, plan.written, kwargs.items(), shapes)

    def _take(self, kind, written, named, shapes):
        for name, value in named:
            if isinstance(value, kind):
                found = (value,)
            elif isinstance(value, (list, tuple)):
                found = [item for item in value if isinstance(item, kind)]
            else:
                continue
            reads = written.get(name)
            for tensor in found:
                if on_device(tensor):
                    if reads is not None:
                        self.written.append(tensor)
                    if reads is not False and not shapes:
                        self.read.append(tensor)


def device_tensors(torch, value):
    """Those in what an operation gives back."""
    if isinstance(value, torch.Tensor):
        return [value] if on_device(value) else []
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in device_tensors(torch, item)]
    return []


class OnHost(object):
    """The same operation over aliases. Make it before the device's run, and call run after it."""

    def __init__(self, torch, maker, plan, read, written):
        self.torch, self.maker, self.plan = torch, maker, plan
        self.bytes = {id(tensor): bytes_ for tensor, bytes_ in read}
        self.old = {id(tensor): maker.of(tensor, bytes_).clone() for tensor, bytes_ in written}

    def _one(self, value):
        if isinstance(value, self.torch.Tensor):
            if not on_device(value):
                return value
            old = self.old.get(id(value))
            return self.maker.of(value, self.bytes.get(id(value)) or aliases.extent(value)) if old is None else old
        if isinstance(value, (list, tuple)):
            return type(value)(self._one(item) for item in value) if type(value) in (list, tuple) else value
        return self.maker.cpu if isinstance(value, self.torch.device) else value

    def _named(self, kwargs, generator, by_place):
        named = {name: self._one(value) for name, value in kwargs.items()}
        if self.plan.has_device:
            if self.plan.names.index("device") >= by_place:
                named["device"] = "cpu"
            named.pop("pin_memory", None)
        if self.plan.has_generator and named.get("generator") is not None:
            named["generator"] = generator
        return named

    def run(self, func, args, kwargs, written, generator):
        """Writes through what is written, and returns the rest of what the operation gives."""
        result = func._op(*[self._one(value) for value in args], **self._named(kwargs, generator, len(args)))
        for tensor in written:
            self.maker.of(tensor, aliases.extent(tensor)).copy_(self.old[id(tensor)])
        return result

    def give(self, made, result, written):
        """`made` by the device's run, with the values, or for what is no device tensor the value, of `result`."""
        if isinstance(made, (list, tuple)):
            both = [self.give(m, r, written) for m, r in zip(made, result)]
            return both if isinstance(made, list) else _tuple_like(made, both)
        if not isinstance(made, self.torch.Tensor):
            return result
        if any(made is tensor for tensor in written):
            return made
        if not on_device(made):
            return made if made is result else made.copy_(result)
        if made.shape != result.shape:  # the shape hangs on values: the device's run had none
            made = self.torch.empty(result.shape, dtype=made.dtype, device=made.device)
        if made.numel():
            self.maker.of(made, aliases.extent(made)).copy_(result)
        return made


def _tuple_like(made, values):
    return tuple(values) if type(made) is tuple else type(made)(values)
