"""The history of ashlar_gpu.torch over simulated memory, without PyTorch. conformance/plugin.py runs it with it.

    ASHLAR_PREFIX=build/release python3 torch_history_test.py
"""

import os
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu import _native, _torch_history, _torch_recording  # noqa: E402
from ashlar_gpu import _torch_plugin as plugin  # noqa: E402

MIB = 1 << 20


class HistoryCase(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_SIMULATED)
        for name, answer in (("open_allocators", {0: self.handle}), ("open_allocator", self.handle)):
            patch = mock.patch.object(plugin, name, return_value=answer)
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(c.close, self.handle)
        self.history = _torch_history.History()
        self.addCleanup(self.history._remove)
        self.addCleanup(self.history.stop)

    def allocate(self, *sizes_mib):
        for size in sizes_mib:
            c.free(self.handle, c.allocate(self.handle, size * MIB))

    def allocated(self):
        """In MiB, as the history has it."""
        return [entry["size"] // MIB for entry in self.history.snapshot()["device_traces"][0] if entry["action"] == "alloc"]

    def files(self):
        return sorted(os.listdir(self.history._folder))


class HistoryTest(HistoryCase):
    def test_it_goes_on_from_snapshot_to_snapshot(self):
        self.allocate(1)
        self.history.start()
        self.allocate(2)
        self.assertEqual(self.allocated(), [2])
        self.allocate(3)
        self.assertEqual(self.allocated(), [2, 3])
        self.assertEqual(len(self.files()), 1)
        self.history.stop()
        self.assertEqual((self.allocated(), self.history.is_on, self.files()), ([], False, []))

    def test_what_is_recorded_so_far_is_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "copy.ashlar")
            self.assertFalse(self.history.copy_recording(0, copy))
            self.history.start()
            self.allocate(1)
            self.assertTrue(self.history.copy_recording(0, copy))
            self.assertIn("segments", _torch_recording.convert(copy))
            self.history.stop()
            self.assertFalse(self.history.copy_recording(0, copy))

    def test_a_snapshot_that_failed_loses_nothing(self):
        self.history.start()
        self.allocate(1)
        state = _torch_recording.convert
        for broken in (mock.patch.object(_native, "program", return_value="/bin/false"),  # of the state already
                       mock.patch.object(_torch_recording, "convert", side_effect=RuntimeError("no program"))):
            with broken, mock.patch.object(_torch_history, "convert", state), self.assertRaises(RuntimeError):
                self.history.snapshot()
            self.allocate(2)
        self.assertTrue(self.history.is_on)
        self.assertEqual(self.allocated(), [1, 2, 2])
        self.allocate(3)
        self.assertEqual(self.allocated(), [1, 2, 2, 3])
        self.assertEqual(len(self.files()), 1)

    def test_a_file_that_does_not_begin_is_tried_again(self):
        self.history.start()
        self.allocate(1)
        with mock.patch.object(c, "start_recording", side_effect=c.Error(c.INTERNAL, "no space")), \
                self.assertRaisesRegex(c.Error, "no space"):
            self.history.snapshot()
        self.allocate(2)  # nobody records
        self.assertEqual(self.allocated(), [1])
        self.allocate(3)
        self.assertEqual(self.allocated(), [1, 3])

    def test_a_file_that_ends_badly_is_followed_by_the_next(self):
        self.history.start()
        self.allocate(1)
        stop = c.stop_recording

        def stop_badly(handle):
            stop(handle)
            raise c.Error(c.INTERNAL, "the disk is full")

        with mock.patch.object(c, "stop_recording", stop_badly), self.assertRaisesRegex(c.Error, "the disk is full"):
            self.history.snapshot()
        self.allocate(2)
        self.assertEqual(self.allocated(), [1, 2])

    def test_the_folder_may_be_tidied_away(self):
        self.history.start()
        self.history._remove()
        with self.assertRaises(RuntimeError):
            self.history.snapshot()  # the file that is gone
        self.history.start(clears=True)
        self.allocate(2)
        self.assertEqual(self.allocated(), [2])


class BoundedTest(HistoryCase):
    """With max_entries: the last ones, in files that do not grow."""

    def setUp(self):
        super().setUp()
        for module, name, value in ((_torch_recording, "LEAST_BYTES", 20_000),
                                    (_torch_history, "SECONDS_BETWEEN_LOOKS", 0.05)):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def work(self, turns):
        for turn in range(turns):
            c.free(self.handle, c.allocate(self.handle, (turn % 300 + 1) * MIB))

    def test_the_last_entries(self):
        self.history.start(max_entries=4)
        self.allocate(1, 2, 3, 4, 5, 6)
        everything = [(action, size) for size in range(1, 7) for action in ("alloc", "free_requested", "free_completed")]
        entries = [(entry["action"], entry["size"] // MIB) for entry in self.history.snapshot()["device_traces"][0]]
        self.assertEqual(entries, everything[-4:])
        self.allocate(7)
        self.assertEqual(len(self.history.snapshot()["device_traces"][0]), 4)

    def test_files_do_not_grow(self):
        self.history.start(max_entries=1000)
        until, most, turns = time.monotonic() + 20, 0, 0
        first = self.files()
        while time.monotonic() < until and self.history._files < 6:
            self.work(2000)
            turns += 2000
            most = max(most, len(self.files()))
        self.assertGreaterEqual(self.history._files, 6, "the thread changed no file")
        self.assertNotIn(first[0], self.files())
        self.assertLessEqual(most, 3)  # two, and the next while one is dropped
        with self.history._lock:  # the thread changes no file meanwhile: between two files nobody records
            self.allocate(7, 9)
        entries = self.history.snapshot()["device_traces"][0]
        self.assertEqual(len(entries), 1000)
        self.assertEqual([entry["size"] // MIB for entry in entries if entry["action"] == "alloc"][-2:], [7, 9])

    def test_a_file_that_is_changed_has_all_that_is_wanted(self):
        with mock.patch.object(_torch_history, "SECONDS_BETWEEN_LOOKS", 1000):
            self.history.start(max_entries=3000)
        recording = self.history._recordings[0]
        self.work(20_000)
        time.sleep(1.5)  # what is written is a second old
        with self.history._lock:
            recording.shorten_if_long()
        self.assertEqual(len(recording._ended), 1)
        self.assertEqual(len(self.history.snapshot()["device_traces"][0]), 3000)
        self.assertEqual(len(self.files()), 1)

    def test_the_thread_ends_with_the_history(self):
        before = threading.enumerate()  # another test's may be about to end
        self.history.start(max_entries=10)
        threads = [thread for thread in threading.enumerate() if thread not in before]
        self.assertEqual(len(threads), 1)
        self.history.stop()
        threads[0].join(10)
        self.assertFalse(threads[0].is_alive())


if __name__ == "__main__":
    unittest.main()
