"""Integrations that need no package, over the hollow device: the process's allocator by ctypes, and the C functions for CuPy.

    ASHLAR_PREFIX=build/release build/release/bin/ashlar dry-run --device A10 -- python3 integrations_test.py
"""

import ctypes
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu import _native, allocator  # noqa: E402

MIB = 1 << 20


class Param(ctypes.Structure):
    _fields_ = [("current_stream", ctypes.c_void_p)]


class CupyFunctions:
    """As CuPy calls them, with a current stream of our own."""

    def __init__(self):
        c.library()
        library = ctypes.CDLL(_native.library("libashlar_cupy.so"))
        self.stream = 0
        self.ask = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(lambda: self.stream)
        self.param = Param(ctypes.cast(self.ask, ctypes.c_void_p))
        self.malloc_function, self.free_function = library.ashlar_cupy_malloc, library.ashlar_cupy_free
        self.malloc_function.restype = ctypes.c_void_p
        self.malloc_function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.free_function.restype, self.free_function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]

    def malloc(self, size, stream=0):
        self.stream = stream
        return self.malloc_function(ctypes.addressof(self.param), size, 0)

    def free(self, address):
        self.free_function(ctypes.addressof(self.param), address, 0)


class IntegrationsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cupy = CupyFunctions()

    def tearDown(self):
        self.assertEqual(allocator.statistics()["allocated_bytes"], 0)
        allocator.empty_cache()

    def test_both_take_from_one_pool_and_the_sum_is_in_the_books(self):
        before = allocator.statistics()
        by_ctypes, by_cupy = allocator.allocate(3 * MIB), self.cupy.malloc(5 * MIB)
        held = allocator.statistics()
        self.assertEqual(held["allocated_bytes"] - before["allocated_bytes"], 8 * MIB)
        self.assertEqual(held["allocations"] - before["allocations"], 2)
        self.assertEqual(held["device_allocations"] - before["device_allocations"], 1)
        allocator.free(by_ctypes)
        self.cupy.free(by_cupy)

    def test_what_one_frees_serves_the_other_in_the_order_of_the_stream(self):
        first = allocator.allocate(3 * MIB, stream=0)
        allocator.free(first)
        other = self.cupy.malloc(3 * MIB, stream=0x55)
        self.assertNotEqual(other, first)
        again = self.cupy.malloc(3 * MIB, stream=1)  # CUDA's other name of the default stream
        self.assertEqual(again, first)
        self.cupy.free(other)
        self.cupy.free(again)

    def test_settings_are_those_of_the_process(self):
        with self.assertRaises(allocator.Error) as caught:
            allocator.configure("max_split_size_mb:77")
        self.assertEqual(caught.exception.status, c.FAILED_PRECONDITION)

    def test_a_device_that_is_not_there(self):
        with self.assertRaises(allocator.Error) as caught:
            allocator.allocate(MIB, device=7)
        self.assertIn("7", str(caught.exception))

    def test_out_of_memory_is_a_memory_error(self):
        with self.assertRaises(MemoryError) as caught:
            allocator.allocate(1 << 50)
        self.assertIn("1024.00 TiB", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
