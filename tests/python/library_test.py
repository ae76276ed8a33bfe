"""The C interface by Python: every function over host or simulated memory, its errors, and the header's own words.

    ASHLAR_PREFIX=build/release python3 library_test.py
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu import _native, allocator  # noqa: E402

MIB = 1 << 20
HEADER = os.path.join(ROOT, "include", "ashlar.h")


class HeaderTest(unittest.TestCase):
    """What the module says of the library is what the header says."""

    @classmethod
    def setUpClass(cls):
        with open(HEADER, encoding="utf-8") as file:
            cls.text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)

    def test_every_function_has_its_row_with_as_many_arguments(self):
        found = {}
        for name, arguments in re.findall(r"ASHLAR_API[^;(]*?ashlar_(\w+)\(([^;]*)\);", self.text):
            found[name] = 0 if arguments == "void" else arguments.count(",") + 1
        self.assertGreater(len(found), 25)
        self.assertEqual(found, {name: len(arguments) for name, (_, arguments) in c.SIGNATURES.items()})

    def test_structs_have_the_header_s_fields_in_its_order(self):
        for struct, name in ((c.OpenOptions, "open_options"), (c.Block, "block"), (c.Statistics, "statistics"),
                             (c.Pool, "pool"), (c.SharedPage, "shared_page"), (c.SleepOptions, "sleep_options"), (c.SleepReport, "sleep_report")):
            body = re.search(r"typedef struct ashlar_%s \{(.*?)\}" % name, self.text, re.S).group(1)
            fields = re.findall(r"(\w+)\s*[,;]", body)
            self.assertEqual(fields, [field[0] for field in struct._fields_], name)

    def test_numbers_are_the_header_s(self):
        named = dict(re.findall(r"ASHLAR_(\w+) = (\d+)", self.text))
        self.assertEqual([named[name] for name in c.STATUS_NAMES], [str(number) for number in range(7)])
        for name in ("MEMORY_CUDA", "MEMORY_HOST", "MEMORY_SIMULATED", "ROUTE_PLAIN", "ROUTE_CAPTURE", "KEEP_HOST",
                     "KEEP_NOTHING", "KEEP_FILE"):
            self.assertEqual(int(named[name]), getattr(c, name))
        self.assertIn(f"define ASHLAR_ABI_VERSION {c.ABI_VERSION}\n", self.text)


class AllocatorTest(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_HOST, capacity_bytes=64 * MIB)

    def tearDown(self):
        c.close(self.handle)

    def test_memory_can_be_written_and_is_counted(self):
        address = c.allocate(self.handle, 3 * MIB)
        self.assertEqual(address % 512, 0)
        ctypes.memset(address, 7, 3 * MIB)
        held = c.statistics(self.handle)
        self.assertEqual((held.allocated_bytes, held.requested_bytes, held.allocations), (3 * MIB, 3 * MIB, 1))
        self.assertEqual(held.total_bytes, 64 * MIB)
        c.free(self.handle, address)
        held = c.statistics(self.handle)
        self.assertEqual((held.allocated_bytes, held.frees, held.peak_allocated_bytes), (0, 1, 3 * MIB))

    def test_no_bytes_are_no_address(self):
        self.assertEqual(c.allocate(self.handle, 0), 0)
        c.free(self.handle, 0)

    def test_a_stream_gets_its_own_memory_back(self):
        first = c.allocate(self.handle, 2 * MIB, stream=1)
        c.free(self.handle, first)
        self.assertNotEqual(c.allocate(self.handle, 2 * MIB, stream=2), first)
        self.assertEqual(c.allocate(self.handle, 2 * MIB, stream=1), first)

    def test_out_of_memory_says_where_the_bytes_are(self):
        held = c.allocate(self.handle, 40 * MIB)
        with self.assertRaises(MemoryError) as caught:
            c.allocate(self.handle, 40 * MIB)
        self.assertIsInstance(caught.exception, c.OutOfMemoryError)
        self.assertEqual(caught.exception.status, c.OUT_OF_MEMORY)
        self.assertIn("40.00 MiB", str(caught.exception))
        self.assertEqual(c.statistics(self.handle).out_of_memory_errors, 1)
        c.free(self.handle, held)

    def test_wrong_addresses_are_named(self):
        with self.assertRaises(c.Error) as caught:
            c.free(self.handle, 0x1234)
        self.assertEqual(caught.exception.status, c.INVALID_ARGUMENT)
        self.assertIn("0x1234", str(caught.exception))
        self.assertNotIsInstance(caught.exception, MemoryError)
        with self.assertRaises(c.Error):
            c.record_stream(self.handle, 0x1234, 1)
        with self.assertRaises(c.Error):
            c.find_block(self.handle, 0x1234)

    def test_a_block_is_found_by_an_address_inside(self):
        address = c.allocate(self.handle, MIB + 1)
        block = c.find_block(self.handle, address + 4096)
        self.assertEqual((block.address, block.requested_bytes), (address, MIB + 1))
        self.assertGreaterEqual(block.size_bytes, MIB + 1)
        self.assertLessEqual(block.segment_address, address)

    def test_the_cache_goes_back(self):
        c.free(self.handle, c.allocate(self.handle, 2 * MIB))
        self.assertGreater(c.statistics(self.handle).reserved_bytes, 0)
        c.empty_cache(self.handle)
        self.assertEqual(c.statistics(self.handle).reserved_bytes, 0)

    def test_limits(self):
        c.set_memory_limit(self.handle, 10 * MIB)
        with self.assertRaises(c.OutOfMemoryError):
            c.allocate(self.handle, 30 * MIB)
        c.set_memory_limit(self.handle, c.NO_LIMIT)
        c.free(self.handle, c.allocate(self.handle, 30 * MIB))
        with self.assertRaises(c.Error):
            c.set_memory_fraction(self.handle, 2)

    def test_torch_s_statistics(self):
        c.allocate(self.handle, MIB)
        values = c.torch_statistics(self.handle)
        self.assertEqual(values["allocated_bytes.all.current"], MIB)
        self.assertGreater(len(values), 50)
        c.free(self.handle, c.allocate(self.handle, 9 * MIB))
        c.reset_peaks(self.handle)
        self.assertEqual(c.statistics(self.handle).peak_allocated_bytes, MIB)

    def test_pools_by_a_filter_of_python(self):
        pool, lib, asked = c.Pool(), c.library(), []
        c.check(lib.ashlar_create_pool(self.handle, ctypes.byref(pool)))
        takes = c.StreamFilter(lambda _, stream: asked.append(stream) or int(stream == 5))
        c.check(lib.ashlar_begin_pool(self.handle, pool, c.ROUTE_PLAIN, takes, None, c.ReleaseContext()))
        inside, outside = (c.allocate(self.handle, MIB, stream) for stream in (5, 6))
        c.check(lib.ashlar_end_pool(self.handle, pool))
        self.assertLessEqual({5, 6}, set(asked))
        self.assertNotEqual(c.find_block(self.handle, inside).segment_address,
                            c.find_block(self.handle, outside).segment_address)

    def test_two_threads_have_their_own_errors(self):
        texts = {}

        def fail(address):
            try:
                c.free(self.handle, address)
            except c.Error as error:
                texts[address] = str(error)

        threads = [threading.Thread(target=fail, args=(address,)) for address in (0x1000, 0x2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertIn("0x1000", texts[0x1000])
        self.assertIn("0x2000", texts[0x2000])

    def test_a_recording_is_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.ashlar")
            c.start_recording(self.handle, path)
            c.free(self.handle, c.allocate(self.handle, MIB))
            c.stop_recording(self.handle)
            self.assertGreater(os.path.getsize(path), 0)
            c.dump_snapshot(self.handle, os.path.join(folder, "now.ashlar"))
            self.assertGreater(os.path.getsize(os.path.join(folder, "now.ashlar")), 0)
            with self.assertRaises(c.Error):
                c.dump_snapshot(self.handle, os.path.join(folder, "none", "now.ashlar"))


class SimulatedTest(unittest.TestCase):
    def test_captures_and_blocks_put_back_are_replayed(self):
        """A pool whose graph is captured, and which then goes back to where its blocks lay."""
        library, pool = c.library(), c.Pool()
        handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_SIMULATED)
        self.addCleanup(c.close, handle)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.ashlar")
            c.start_recording(handle, path)
            c.check(library.ashlar_create_pool(handle, ctypes.byref(pool)))
            c.check(library.ashlar_begin_pool(handle, pool, c.ROUTE_PLAIN, c.StreamFilter(), None, c.ReleaseContext()))
            c.check(library.ashlar_begin_capture(handle, pool))
            blocks = [(c.allocate(handle, size * MIB), size * MIB) for size in (3, 5, 4, 2)]
            c.record_stream(handle, blocks[0][0], 7)
            c.free(handle, blocks[0][0])  # waits until the capture has ended
            c.check(library.ashlar_end_capture(handle, pool))
            c.check(library.ashlar_end_pool(handle, pool))
            for address, _ in blocks[1:]:
                c.free(handle, address)
            for address, size in reversed(blocks[1:]):
                c.check(library.ashlar_allocate_at(handle, address, size, size))
            c.allocate(handle, 6 * MIB)
            c.check(library.ashlar_stop_recording(handle))
            done = subprocess.run([_native.program(), "replay", path, "--json"], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)["fidelity"]
        self.assertEqual((told["matched"], told["total"], told["final_state_matches"]), (8, 8, True))

    def test_eighty_gib_without_memory_behind_them(self):
        handle = c.open_allocator(conf="max_split_size_mb:128,report_leaks:False", memory=c.MEMORY_SIMULATED)
        c.allocate(handle, 70 << 30)
        self.assertEqual(c.statistics(handle).total_bytes, 80 << 30)
        self.assertIn("max_split_size_mb:128", c.conf(handle))
        c.close(handle)

    def test_an_unknown_setting_is_named(self):
        with self.assertRaises(c.Error) as caught:
            c.open_allocator(conf="no_such_key:1", memory=c.MEMORY_SIMULATED)
        self.assertEqual(caught.exception.status, c.INVALID_ARGUMENT)
        self.assertIn("no_such_key", str(caught.exception))


class ProcessTest(unittest.TestCase):
    """Each in a process of its own, since a process loads the library once."""

    def run_python(self, code, **environment):
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), **environment}
        return subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True,
                              check=False)

    def test_importing_loads_nothing(self):
        done = self.run_python("import ashlar_gpu._library, ashlar_gpu.allocator", ASHLAR_PREFIX="/none", PATH="/none")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_library_that_is_not_there(self):
        done = self.run_python("from ashlar_gpu import allocator; allocator.statistics()", ASHLAR_PREFIX="/none",
                               PATH="/none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("libashlar.so.1 was not found", done.stderr)

    def test_a_library_of_another_version(self):
        """Of another program: it has none of the functions."""
        with tempfile.TemporaryDirectory() as prefix:
            os.makedirs(os.path.join(prefix, "lib"))
            os.symlink(os.path.realpath(_libc()), os.path.join(prefix, "lib", c.SONAME))
            done = self.run_python("from ashlar_gpu import allocator; allocator.statistics()", ASHLAR_PREFIX=prefix)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError", done.stderr)
        self.assertIn("install the ashlar that belongs to this package", done.stderr)

    def test_without_a_gpu(self):
        done = self.run_python("from ashlar_gpu import allocator\n"
                               "try: allocator.statistics()\n"
                               "except allocator.Error as error: print(error.status)")
        if done.returncode == 0 and done.stdout == "":
            self.skipTest("there is a GPU")
        self.assertEqual(done.stdout, f"{c.UNAVAILABLE}\n", done.stderr)

    def test_settings_that_are_none(self):
        done = self.run_python("from ashlar_gpu import allocator\n"
                               "try: allocator.configure('no_such_key:1')\n"
                               "except allocator.Error as error: print(error.status)")
        self.assertEqual(done.stdout, f"{c.INVALID_ARGUMENT}\n", done.stderr)

    def test_sizes_addresses_and_streams_are_ints(self):
        """Said before a GPU is asked for."""
        for error, word, call in (
                (TypeError, "the address is an int, and not 'x'", lambda: allocator.free("x")),
                (TypeError, "the address is an int, and not None", lambda: allocator.free(None)),
                (ValueError, "the address is an int from 0", lambda: allocator.free(-1)),
                (TypeError, "the size in bytes is an int, and not 'x'", lambda: allocator.allocate("x")),
                (TypeError, "the size in bytes is an int, and not 1.5", lambda: allocator.allocate(1.5)),
                (ValueError, "the size in bytes is an int from 0", lambda: allocator.allocate(-1)),
                (ValueError, "the size in bytes", lambda: allocator.allocate(1 << 64)),
                (TypeError, "the stream", lambda: allocator.allocate(1, stream="x")),
                (ValueError, "the stream", lambda: allocator.record_stream(0, -1)),
                (ValueError, "the size in bytes", lambda: allocator.set_memory_limit(-1))):
            with self.assertRaises(error) as caught:
                call()
            self.assertIn(word, str(caught.exception))
            self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_what_is_an_int_by_itself_is_one(self):
        class Address:
            def __int__(self):
                return 7

        self.assertEqual(allocator.number_of(Address(), "the address"), 7)
        self.assertEqual(allocator.number_of(ctypes.c_void_p(7).value, "the address"), 7)

    def test_cuda_core_s_are_too(self):
        """With a stand-in for cuda.core: conformance runs the package itself."""
        done = self.run_python('''if True:
            import sys, types
            core = types.ModuleType("cuda.core")
            class Buffer:
                def from_handle(ptr, size, mr=None, stream=None): pass
            core.Buffer, core.MemoryResource = Buffer, object
            sys.modules.update({"cuda": types.ModuleType("cuda"), "cuda.core": core})
            from ashlar_gpu.cuda_core import MemoryResource
            memory = MemoryResource()
            for call in (lambda: memory.allocate(-1), lambda: memory.allocate("x"), lambda: memory.deallocate("x", 1),
                         lambda: memory.allocate(1, "x"), lambda: memory.deallocate(1, 1, 5)):
                try: call()
                except (TypeError, ValueError) as error: print(error)
            ''')
        self.assertEqual(done.stdout.splitlines(), [
            "ashlar: the size in bytes is an int from 0 to 2^64 - 1, and not -1",
            "ashlar: the size in bytes is an int, and not 'x'", "ashlar: the address is an int, and not 'x'",
            "ashlar: the stream is a cuda.core Stream, and not 'x'",
            "ashlar: the stream is a cuda.core Stream, and not 5"], done.stderr)

    def test_streams(self):
        self.assertEqual([allocator.stream_of(stream) for stream in (0, 1, 0x55)], [0, 0, 0x55])
        with self.assertRaises(allocator.Error):
            allocator.stream_of(allocator.PER_THREAD_STREAM)


def _libc():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return next(line.split()[-1] for line in maps if "libc.so" in line or "libc-" in line)


if __name__ == "__main__":
    unittest.main()
