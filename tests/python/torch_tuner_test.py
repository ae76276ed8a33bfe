"""The tuner of PyTorch's integration, without PyTorch: over an allocator of simulated memory, with the program `ashlar` itself.

conformance has the same with PyTorch over the hollow device.
"""

import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402
from ashlar_gpu import _torch_tuner  # noqa: E402

MIB = 1 << 20


class TorchTuner(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="", memory=c.MEMORY_SIMULATED, capacity_bytes=16 << 30)
        self.addCleanup(c.close, self.handle)
        self.told = []

    def tuner(self, mode):
        return _torch_tuner.Tuner(mode, self.handle, self.told.append)

    def run_epochs(self, count, size_of=lambda i: (33 + i) * MIB):
        """Each request is larger than what is cached, and all of one size when rounded up."""
        for _ in range(count):
            c.empty_cache(self.handle)
            for i in range(24):
                small = c.allocate(self.handle, 300 << 10)
                c.free(self.handle, c.allocate(self.handle, size_of(i)))
                c.free(self.handle, small)

    def peak(self):
        return c.statistics(self.handle).peak_reserved_bytes

    def test_it_advises_and_changes_nothing(self):
        tuner = self.tuner("advise")
        self.run_epochs(12)
        self.assertTrue(tuner.look().startswith("advised roundup_power2_divisions:2"), self.told)
        before = self.peak()
        c.reset_peaks(self.handle)
        self.run_epochs(2)
        self.assertEqual(self.peak(), before)

    def test_it_switches_and_sees_what_came_of_it(self):
        tuner = self.tuner("switch")
        self.run_epochs(12)
        before = self.peak()
        self.assertTrue(tuner.look().startswith("switched to roundup_power2_divisions:2"), self.told)
        c.empty_cache(self.handle)
        c.reset_peaks(self.handle)
        self.run_epochs(14)
        self.assertLess(self.peak(), before * 0.95)
        self.assertTrue(tuner.look().startswith("kept roundup_power2_divisions:2"), self.told)
        self.assertEqual(len(self.told), 2)

    def test_a_recording_of_the_programs_own_comes_first(self):
        tuner = self.tuner("advise")
        with tempfile.TemporaryDirectory() as folder:
            c.start_recording(self.handle, os.path.join(folder, "own.ashlar"))
            self.assertEqual(tuner.look(), "nothing is tried: the program records its own history")
            c.stop_recording(self.handle)
        tuner.look()  # a ring begins anew
        self.run_epochs(12)
        self.assertTrue(tuner.look().startswith("advised "), self.told)

    def test_what_is_recorded_so_far_does_for_a_ring(self):
        """As under `ashlar dry-run` and `record`, which record from the first use of CUDA on."""
        with tempfile.TemporaryDirectory() as folder:
            own = os.path.join(folder, "own.ashlar")
            c.start_recording(self.handle, own)
            tuner = _torch_tuner.Tuner("switch", self.handle, self.told.append,
                                       copy_recording=lambda file: bool(shutil.copyfile(own, file)))
            self.run_epochs(60)
            self.assertTrue(tuner.look().startswith("switched to roundup_power2_divisions:2"), self.told)
            c.empty_cache(self.handle)
            self.run_epochs(140)
            self.assertTrue(tuner.look().startswith("kept roundup_power2_divisions:2"), self.told)
            c.stop_recording(self.handle)

    def test_the_thread_ends_and_a_last_look_is_taken(self):
        tuner = self.tuner("advise")
        tuner.start(pause=600)
        tuner.stop(last_look=True)
        self.assertEqual(self.told, ["nothing is tried: 0 whole steps are seen"])

    def test_modes(self):
        self.assertIsNone(_torch_tuner.mode_of(None, {}))
        self.assertEqual(_torch_tuner.mode_of(None, {"ASHLAR_TUNE": "advise"}), "advise")
        self.assertEqual(_torch_tuner.mode_of("switch", {"ASHLAR_TUNE": "advise"}), "switch")
        with self.assertRaisesRegex(c.Error, "'guess' is not advise or switch"):
            _torch_tuner.mode_of("guess", {})


if __name__ == "__main__":
    unittest.main()
