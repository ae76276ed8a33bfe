"""What ashlar_gpu.torch asks of PyTorch's pools, over memory of the host: a torch for tests without PyTorch.

    class TagsTest(torch_stand_in.OverHostMemory): ...   # self.torch, self.handle, self.allocate(size), self.reserved()

Memory has contents. A test's allocator and modules are its own.
"""

import contextlib
import ctypes
import importlib
import itertools
import os
import sys
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402  (the path comes first)
from ashlar_gpu import _library as c  # noqa: E402
from ashlar_gpu import _torch_history, _torch_plugin  # noqa: E402

MIB = 1 << 20
OVER_TORCH = ("_torch_sleep", "torch", "sleepers")  # modules that keep the torch that they were imported with


class Graph:
    """torch.cuda.CUDAGraph, which is captured by `graph` below."""

    def pool(self):
        return self.of.id


class OverHostMemory(unittest.TestCase):
    CONF = ""

    def setUp(self):
        self.handle = c.open_allocator(conf=",".join(filter(None, ("report_leaks:False", self.CONF))), memory=c.MEMORY_HOST,
                                       capacity_bytes=128 * MIB)
        self.addCleanup(c.close, self.handle)
        self.inside = []  # the pools whose scopes are open, the innermost last
        self.torch = self._torch()
        for patch in (mock.patch.dict(sys.modules, torch=self.torch),
                      mock.patch.object(c, "process_allocator", return_value=self.handle),
                      mock.patch.object(_torch_plugin, "open_allocators", return_value={0: self.handle})):
            patch.start()
            self.addCleanup(patch.stop)
        self.forget()
        self.addCleanup(self.forget)
        self.torch.cuda.MemPool = self.module("_torch_pools").MemPool

    @staticmethod
    def forget():
        for name in OVER_TORCH:
            sys.modules.pop("ashlar_gpu." + name, None)
            ashlar_gpu.__dict__.pop(name, None)

    @staticmethod
    def module(name):
        return importlib.import_module("ashlar_gpu." + name)

    def installed(self):
        """ashlar_gpu.torch, as it is after install."""
        integration = self.module("torch")
        integration._installed = self  # no plug-in is loaded
        return integration

    def _torch(self):
        counter = itertools.count(1)

        @contextlib.contextmanager
        def use_mem_pool(pool, _device=None):
            self.inside.append(pool)
            try:
                yield
            finally:
                self.inside.pop()

        @contextlib.contextmanager
        def graph(cuda_graph, pool=None, stream=None, capture_error_mode="global"):
            del stream, capture_error_mode
            cuda_graph.of = types.SimpleNamespace(_pool=c.Pool(*pool), id=pool) if pool else torch.cuda.MemPool()
            with use_mem_pool(cuda_graph.of):
                yield

        torch = types.ModuleType("torch")
        torch._C = types.SimpleNamespace(_cuda_memorySnapshot=self.snapshot)
        torch.cuda = types.SimpleNamespace(
            current_device=lambda: 0, graph_pool_handle=lambda: (0, next(counter)), use_mem_pool=use_mem_pool, graph=graph,
            device=lambda _: contextlib.nullcontext(), OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
            empty_cache=lambda: c.empty_cache(self.handle),
            _utils=types.SimpleNamespace(_get_device_index=lambda device, optional: device or 0))
        return torch

    def snapshot(self, pool):
        return _torch_history.History().snapshot(tuple(pool[:2]), pool[2], 1)

    def allocate(self, size_bytes):
        out = ctypes.c_void_p()
        c.check(c.library().ashlar_allocate_in_pool(self.handle, self.inside[-1]._pool, size_bytes, 0, ctypes.byref(out)))
        return out.value

    def reserved(self):
        return c.statistics(self.handle).reserved_bytes
