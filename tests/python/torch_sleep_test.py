"""Tags, sleep and wake of ashlar_gpu.torch over memory of the host, with stand-ins for PyTorch's pools.

    ASHLAR_PREFIX=build/release python3 torch_sleep_test.py
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

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)

MIB = 1 << 20


class TagsTest(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_HOST,
                                       capacity_bytes=64 * MIB)
        self.addCleanup(c.close, self.handle)
        self.inside = []  # the pools whose scopes are open, the innermost last
        counter = itertools.count(1)

        @contextlib.contextmanager
        def use_mem_pool(pool, _device):
            self.inside.append(pool)
            yield
            self.inside.pop()

        torch = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(
            current_device=lambda: 0, graph_pool_handle=lambda: (0, next(counter)), use_mem_pool=use_mem_pool,
            device=lambda _: contextlib.nullcontext(), OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
            _utils=types.SimpleNamespace(_get_device_index=lambda device, optional: device or 0))
        self.torch = torch
        for patch in (mock.patch.dict(sys.modules, torch=torch),
                      mock.patch.object(c, "process_allocator", return_value=self.handle)):
            patch.start()
            self.addCleanup(patch.stop)
        sys.modules.pop("ashlar_gpu._torch_sleep", None)
        self.sleep = importlib.import_module("ashlar_gpu._torch_sleep")
        self.tags = self.sleep.Tags(importlib.import_module("ashlar_gpu._torch_pools").MemPool)
        self.addCleanup(lambda: self.__dict__.pop("tags"))  # its pools end before their allocator

    def allocate(self, size_bytes):
        out = ctypes.c_void_p()
        c.check(c.library().ashlar_allocate_in_pool(self.handle, self.inside[-1]._pool, size_bytes, 0, ctypes.byref(out)))
        return out.value

    def reserved(self):
        return c.statistics(self.handle).reserved_bytes

    def test_what_a_tag_has_sleeps_and_comes_back(self):
        with self.tags.scope("cache"):
            cache = self.allocate(30 * MIB)
        with self.tags.scope("weights"):
            weights = self.allocate(3 * MIB)
        ctypes.memset(weights, 7, 3 * MIB)
        self.assertEqual(self.sleep.sleep(["cache"], keep="nothing"), 40 * MIB)
        self.assertEqual(self.reserved(), 20 * MIB)
        self.assertEqual(self.sleep.sleep(["weights"], keep="host", host_limit=MIB), 20 * MIB)
        self.sleep.wake([])
        self.assertEqual(ctypes.string_at(weights, 3 * MIB), b"\7" * (3 * MIB))
        ctypes.memset(cache, 1, 30 * MIB)

    def test_a_tag_keeps_its_pool_and_has_another_where_that_is_in_use(self):
        with self.tags.scope("a"):
            first = self.inside[-1]
            with self.tags.scope("b"), self.tags.scope("a"):
                self.assertIsNot(self.inside[-1], first)
                inner = self.allocate(3 * MIB)
        with self.tags.scope("a"):
            self.assertIn(self.inside[-1].id, {first.id, (0, 3)})
        self.assertEqual(self.sleep.sleep(["a"]), 20 * MIB)
        self.assertEqual(c.library().ashlar_is_asleep(self.handle, inner), 1)

    def test_what_is_registered_stays_awake(self):
        with self.tags.scope("cache"):
            cache = self.allocate(30 * MIB)
        storage = types.SimpleNamespace(data_ptr=lambda: cache, nbytes=lambda: 30 * MIB)
        tensor = types.SimpleNamespace(device=0, untyped_storage=lambda: storage)
        self.sleep.register_range(tensor)
        with self.assertWarnsRegex(UserWarning, "pools of 40 MiB stay awake, since ranges of them are registered"):
            self.assertEqual(self.sleep.sleep(["cache"]), 0)
        ctypes.memset(cache, 1, 30 * MIB)
        self.sleep.unregister_range(tensor)
        self.assertEqual(self.sleep.sleep(["cache"], keep="nothing"), 40 * MIB)
        with self.assertRaisesRegex(c.Error, "\"cache\" is asleep: call Wake first"):
            self.sleep.register_range(tensor)

    def test_errors_are_one_line(self):
        with self.assertRaisesRegex(c.Error, "keep is \"host\", \"nothing\" or \"file\", and not 'disk'"):
            self.sleep.sleep([], keep="disk")
        with self.assertRaisesRegex(c.Error, "no pool has the tag \"nobody\""):
            self.sleep.sleep(["nobody"])
        with self.tags.scope("cache"):
            self.allocate(30 * MIB)
            self.sleep.sleep(["cache"], keep="nothing")
            with self.assertRaisesRegex(c.Error, "\"cache\" is asleep: call Wake first"):
                self.allocate(512)
        c.set_memory_limit(self.handle, 20 * MIB)
        with self.assertRaisesRegex(self.torch.cuda.OutOfMemoryError, "Wake: what sleeps is kept: out of memory"):
            self.sleep.wake(["cache"])


if __name__ == "__main__":
    unittest.main()
