"""Values that the program is given where it reads them of the device: `ashlar dry-run --value train.py:88=0.5`.

A read is an operation that tells the host what a tensor of the device holds:

    a number    .item(), float(), an `if`, torch.equal
    a tensor    .cpu(), .tolist(), a copy to the host: each element is the value, or of a list its own
    a count     of elements that are true, or different, which makes a shape: nonzero, masks, unique

It is of the line where the innermost frame of the flag's file stands. Flags of one line take turns, and the last one stays. A
value is cast to the tensor's type; one that the type cannot hold is not given, and the report says so. The device takes the
memory that it takes for the value: a count is what the operation itself reads (ashlar_hollow_read_as).
Thread rule: the GIL is held.
"""

import os
import sys

from . import lines, operation, schemas

NUMBER, TENSOR, COUNT = range(3)
COUNTS = ("nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
          "repeat_interleave")
MOST_LINES = 100  # that read values: so many are told of

of_process = None  # the Reads of this process; None: it was started without --value


class Flag(object):
    def __init__(self, text):
        place, _, value = text.rpartition("=")
        file, _, line = place.rpartition(":")
        self.text, self.file, self.line = text, os.path.normpath(file), int(line)
        self.value = _value_of(value)
        self.reads, self.why_not = 0, None

    def is_of(self, path):
        return ("/" + os.path.abspath(path)).endswith("/" + self.file)


class Reads(object):
    def __init__(self, torch, texts):
        self.torch = torch
        self.torch_folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self.flags = [Flag(text) for text in texts]
        self.by_file = {}  # as frames name a file -> {line: its flags, in turn}
        self.lines = {}  # of the program -> how many values they read

    def forked(self):
        """In the child: its reads are its own."""
        self.lines = {}
        for flag in self.flags:
            flag.reads, flag.why_not = 0, None

    def read(self, plan, arguments, args, kwargs):
        """The Read that is to be given a value; None: nothing is read, or its line has no value."""
        kind = self._kind(plan, arguments, args, kwargs)
        if kind is None:
            return None
        line = lines.current(self.torch_folder) or "?"
        self.lines[line] = self.lines.get(line, 0) + 1
        turns = self._flags_here()
        if not turns:
            return None
        flag = next((flag for flag in turns if not flag.reads), turns[-1])
        try:
            read = Read(kind, self._elements(kind, flag.value, plan, arguments))
        except ValueError as error:
            flag.why_not = str(error)
            return None
        flag.reads += 1
        return read

    def _kind(self, plan, arguments, args, kwargs):
        if not arguments.read or not arguments.read[0].numel():
            return None
        if plan.gives_number:
            return NUMBER
        if plan.copies:
            return TENSOR if self._is_to_host(plan, args, kwargs) else None
        is_count = plan.name in COUNTS or (plan.name in schemas.MASKS and self._masks(arguments))
        return COUNT if is_count and plan.reads_inside else None

    def _is_to_host(self, plan, args, kwargs):
        if plan.name == "copy_":
            return not operation.on_device(args[0])
        devices = [device for device in [kwargs.get("device")] + list(args[1:]) if isinstance(device, self.torch.device)]
        return bool(devices) and devices[0].type == "cpu"

    def _masks(self, arguments):
        return [t for t in arguments.read[1:] if t.dtype in (self.torch.bool, self.torch.uint8)]

    def _elements(self, kind, value, plan, arguments):
        """The value as a tensor of the host, of one element or of a list's; ValueError says why it cannot be."""
        tensor = arguments.read[0]
        dtype = self._type(kind, plan, tensor)
        if isinstance(value, list) and (kind != TENSOR or len(value) != tensor.numel()):
            what = {NUMBER: "one number", COUNT: "a count"}.get(kind, "%d elements" % tensor.numel())
            raise ValueError("a list of %d, and what is read there is %s" % (len(value), what))
        cast = [_cast(self.torch, one, dtype) for one in (value if isinstance(value, list) else [value])]
        if kind == COUNT:
            self._check_count(cast[0], plan, arguments)
        made = self.torch.tensor(cast, dtype=None if _is_real(dtype) else dtype, device="cpu").to(dtype)
        return made if isinstance(value, list) else made[0]

    def _type(self, kind, plan, tensor):
        if kind == COUNT:
            return self.torch.int64
        return tensor.dtype if kind == TENSOR or plan.name in ("_local_scalar_dense", "item") else self.torch.bool

    def _check_count(self, count, plan, arguments):
        counted = self._masks(arguments) if plan.name in schemas.MASKS else arguments.read[:1]
        most = max(tensor.numel() for tensor in counted)
        if count < 0 or (plan.name in schemas.MASKS + ("nonzero",) and count > most):
            raise ValueError("what is read there is a count of elements, of 0 to %d" % most)

    def _flags_here(self):
        passed, frame = set(), sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            by_line = self._by_line(file)
            if by_line and file not in passed:
                if frame.f_lineno in by_line:
                    return by_line[frame.f_lineno]
                passed.add(file)
            frame = frame.f_back
        return None

    def _by_line(self, file):
        found = self.by_file.get(file)
        if found is None:
            found = self.by_file[file] = {}
            for flag in self.flags:
                if flag.is_of(file):
                    found.setdefault(flag.line, []).append(flag)
        return found

    def told(self):
        return {
            "given_values": [{"flag": f.text, "reads": f.reads, "why_not": f.why_not} for f in self.flags],
            "value_reads": [{"line": line, "count": n} for line, n in list(self.lines.items())[:MOST_LINES]],
        }


class Read(object):
    """Of one operation, whose device's run is made with `count` to read, and `given` what it then gives."""

    def __init__(self, kind, elements):
        self.kind, self.elements = kind, elements
        self.count = int(elements) if kind == COUNT else 0

    def given(self, made):
        if self.kind == NUMBER:
            return self.elements.item()
        if self.kind == TENSOR:
            elements = self.elements
            made.copy_(elements.reshape(made.shape) if elements.dim() else elements)
        return made


def _is_real(dtype):
    return dtype.is_floating_point or dtype.is_complex


def _cast(torch, number, dtype):
    """As Python has what an element of the type can be."""
    if _is_real(dtype):
        return number if dtype.is_complex else float(number)
    if dtype == torch.bool:
        if number not in (0, 1):
            raise ValueError("what is read there is true or false")
        return bool(number)
    limits = torch.iinfo(dtype)
    if not limits.min <= number <= limits.max or number != int(number):
        raise ValueError("what is read there is a whole number of %d to %d" % (limits.min, limits.max))
    return int(number)


def _value_of(text):
    text = text.strip()
    return [_number_of(one) for one in text[1:-1].split(",")] if text.startswith("[") else _number_of(text)


def _number_of(text):
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word)
    except ValueError:
        return float(word)


def start(torch, texts):
    """The values of this process; None where there are none, or where one cannot be read."""
    global of_process
    try:
        of_process = Reads(torch, texts) if texts else None
    except ValueError:
        of_process = None  # the launcher has read them: it is not ours
    if of_process is not None and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=of_process.forked)
    return of_process


def told():
    """For what the process leaves behind."""
    return {} if of_process is None else of_process.told()
