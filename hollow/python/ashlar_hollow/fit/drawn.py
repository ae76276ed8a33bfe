"""Random numbers of large tensors in host memory, which a later run of the program leaves out: their pages are never touched.

    Draws(torch, folder, leaves=False)    # in the first run: where the generator stood before and after each large fill
    Draws(torch, folder, leaves=True)     # in a later one: the same fill is left out, and its generator goes on as if it had been made

A fill is the same where the generator is in the same state, and the call, its arguments, the size and the type are equal. All
that is drawn after it is then equal too, such as the order of a DataLoader. What is left out holds the values that it came with.
Every other fill is made. Thread rule: any thread.
"""

import ctypes
import functools
import hashlib
import json
import os
import threading
import time

LARGE_BYTES = 1 << 20  # copies of more to the device have no values there
DRAWERS = ("uniform_", "normal_", "exponential_", "random_", "log_normal_", "cauchy_", "bernoulli_", "geometric_")


def is_large(torch, tensor):
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.device.type == "cpu"
        and tensor.numel() * tensor.element_size() >= LARGE_BYTES
    )


class Draws(object):
    def __init__(self, torch, folder, leaves):
        self.torch = torch
        self.path = os.path.join(folder, "drawn-%d.json" % os.getpid())
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.seconds = 0.0  # that large fills took
        self.keeps = not leaves
        self.known = read(folder) if leaves else {}
        if self.keeps or self.known:
            for name in DRAWERS:
                setattr(torch.Tensor, name, self.watched(getattr(torch.Tensor, name)))

    def watched(self, original):
        @functools.wraps(original)
        def draw(tensor, *args, **kwargs):
            generator = kwargs.get("generator") or self.torch.default_generator
            try:
                key = self.key(tensor, original.__name__, args, kwargs, generator)
            except Exception:
                key = None  # the call itself says what is wrong
            if key is None:
                return original(tensor, *args, **kwargs)
            if key in self.known:
                generator.set_state(self.torch.frombuffer(bytearray.fromhex(self.known[key]), dtype=self.torch.uint8))
                return tensor
            began = time.monotonic()
            out = original(tensor, *args, **kwargs)
            self.drawn(key, generator, time.monotonic() - began)
            return out

        return draw

    def key(self, tensor, name, args, kwargs, generator):
        """Of a fill; None where it is small, or is not surely a plain one."""
        torch = self.torch
        if not is_large(torch, tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return None
        if not tensor.is_contiguous() or tensor.requires_grad and torch.is_grad_enabled():
            return None
        given = list(args) + [one for pair in sorted(kwargs.items()) if pair[0] != "generator" for one in pair]
        if not all(one is None or isinstance(one, (int, float, str)) for one in given):
            return None
        text = repr((name, given, tensor.numel(), str(tensor.dtype)))
        return hashlib.sha256(_state(generator) + text.encode()).hexdigest()

    def drawn(self, key, generator, seconds):
        with self.lock:
            self.seconds += seconds
            if self.keeps and os.getpid() == self.pid:
                try:
                    with open(self.path, "a") as out:
                        out.write(json.dumps([key, _state(generator).hex()]) + "\n")
                except OSError:
                    self.keeps = False  # what was kept before stays


def read(folder):
    """The state of the generator after each fill, by its key, of all processes of the first run."""
    known = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("drawn-"):
            with open(os.path.join(folder, name)) as lines:
                known.update(json.loads(line) for line in lines if line.endswith("\n"))
    return known


def _state(generator):
    state = generator.get_state()
    return ctypes.string_at(state.data_ptr(), state.numel())
