"""ashlar_gpu's MemPool over simulated memory, with PyTorch's counter of ids in PyTorch's place.

    ASHLAR_PREFIX=build/release python3 torch_pools_test.py
"""

import ctypes
import gc
import itertools
import os
import sys
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu._torch_pools import MemPool  # noqa: E402

MIB = 1 << 20


class PoolsTest(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_SIMULATED)
        self.addCleanup(c.close, self.handle)
        counter = itertools.count(1)
        self.torch = types.ModuleType("torch")
        self.torch.cuda = types.SimpleNamespace(current_device=lambda: 0, graph_pool_handle=lambda: (0, next(counter)))
        for patch in (mock.patch.dict(sys.modules, torch=self.torch),
                      mock.patch.object(c, "process_allocator", return_value=self.handle)):
            patch.start()
            self.addCleanup(patch.stop)

    def allocate(self, pool):
        out = ctypes.c_void_p()
        c.check(c.library().ashlar_allocate_in_pool(self.handle, pool._pool, 30 * MIB, 0, ctypes.byref(out)))
        return out.value

    def test_no_graph_has_a_pool_s_id(self):
        ids = []
        for _ in range(3):
            pool = MemPool()
            ids += [pool.id, self.torch.cuda.graph_pool_handle()]
        self.assertEqual(len(set(ids)), 6, ids)

    def test_nor_a_pool_that_the_allocator_made(self):
        made = c.Pool()
        c.check(c.library().ashlar_create_pool(self.handle, ctypes.byref(made)))
        self.assertNotEqual(MemPool().id, (made.first, made.second))
        self.assertEqual(c.library().ashlar_pool_users(self.handle, made), 1)

    def test_one_user_and_its_memory_goes_back(self):
        for traits in ({}, {"use_on_oom": True}, {"no_split": True}):
            pool = MemPool(**traits)
            self.assertEqual(pool.use_count(), 1, traits)
            c.free(self.handle, self.allocate(pool))
            c.empty_cache(self.handle)
            self.assertEqual(c.statistics(self.handle).reserved_bytes, 30 * MIB)
            del pool
            gc.collect()
            self.assertEqual(c.statistics(self.handle).reserved_bytes, 0)

    def test_a_pool_that_could_not_be_made_ends_quietly(self):
        with mock.patch.object(c, "check", side_effect=c.Error(c.INTERNAL, "no")), self.assertRaises(c.Error):
            MemPool()
        gc.collect()


if __name__ == "__main__":
    unittest.main()
