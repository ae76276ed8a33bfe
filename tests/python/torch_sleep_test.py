"""Tags, sleep and wake of ashlar_gpu.torch over memory of the host, with stand-ins for PyTorch's pools.

    ASHLAR_PREFIX=build/release python3 torch_sleep_test.py
"""

import ctypes
import types
import unittest

import torch_stand_in
from torch_stand_in import MIB, c


class TagsTest(torch_stand_in.OverHostMemory):
    def setUp(self):
        super().setUp()
        self.sleep = self.module("_torch_sleep")
        self.tags = self.sleep.Tags(self.torch.cuda.MemPool)
        self.addCleanup(lambda: self.__dict__.pop("tags"))  # its pools end before their allocator

    def test_what_a_tag_has_sleeps_and_comes_back(self):
        with self.tags.scope("cache"):
            cache = self.allocate(30 * MIB)
        with self.tags.scope("weights"):
            weights = self.allocate(3 * MIB)
        ctypes.memset(weights, 7, 3 * MIB)
        self.assertEqual(self.sleep.sleep(["cache"], keep="nothing"), 40 * MIB)
        self.assertEqual(self.reserved(), 20 * MIB)
        told = []
        self.assertEqual(self.sleep.sleep(["weights"], keep="host", host_limit=MIB, progress=lambda *of: told.append(of)), 20 * MIB)
        self.assertEqual((told[0], told[-1]), ((MIB, 3 * MIB), (3 * MIB, 3 * MIB)))
        self.assertEqual(self.sleep.held(), [])
        self.sleep.wake([], progress=lambda *of: told.append(of))
        self.assertEqual(told[-1], (3 * MIB, 3 * MIB))
        self.assertEqual(dict(self.sleep.held()), {'pool {0, 1} "cache"': 40 * MIB, 'pool {0, 2} "weights"': 20 * MIB})
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
        self.assertTrue(self.sleep.is_asleep(inner))

    def test_pools_sleep_by_their_ids(self):
        with self.tags.scope("cache"):
            cache = self.allocate(30 * MIB)
            pool = self.inside[-1]
        with self.tags.scope("weights"):
            self.allocate(3 * MIB)
        self.assertEqual(self.sleep.sleep([], keep="nothing", pools=[pool.id]), 40 * MIB)
        self.assertEqual(self.reserved(), 20 * MIB)
        self.assertTrue(self.sleep.is_asleep(cache))
        self.sleep.sleep(["weights"])
        self.sleep.wake([], pools=[pool.id])
        self.assertFalse(self.sleep.is_asleep(cache))
        self.assertEqual(self.reserved(), 40 * MIB)
        with self.assertRaisesRegex(c.Error, "there is no pool {5, 5}"):
            self.sleep.sleep([], pools=[(5, 5)])

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
