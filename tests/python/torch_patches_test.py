"""What ashlar_gpu.torch answers in PyTorch's place, and its line for what it does not, over simulated memory with a stand-in
for torch. conformance/plugin.py runs it with PyTorch.

    ASHLAR_PREFIX=build/release python3 torch_patches_test.py
"""

import os
import sys
import types
import unittest
import warnings
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu import _torch_patches as patches  # noqa: E402
from ashlar_gpu import _torch_plugin as plugin  # noqa: E402

MIB = 1 << 20


def stand_in(handle):
    """The names of torch that are replaced, each with what PyTorch says of a pluggable allocator."""
    torch = types.SimpleNamespace(asked=[])
    own = {"_accelerator_isAllocatorInitialized": False, "_accelerator_emptyCache": None, "_accelerator_getDeviceStats": {},
           "_accelerator_getMemoryInfo": None, "_accelerator_resetPeakStats": None,
           "_accelerator_setAllocatorSettings": None, "_cuda_cudaCachingAllocator_enable": None,
           "_cuda_record_memory_history": None, "_cuda_record_memory_history_legacy": None}
    torch._C = types.SimpleNamespace()
    for name, said in own.items():
        setattr(torch._C, name, lambda *arguments, _name=name, _said=said: torch.asked.append((_name, *arguments)) or _said)
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0, device_count=lambda: 1,
                                       mem_get_info=lambda device: (1, 2), empty_cache=lambda: c.empty_cache(handle))
    return torch


class PatchesTest(unittest.TestCase):
    def setUp(self):
        self.handle = c.open_allocator(conf="report_leaks:False", memory=c.MEMORY_SIMULATED)
        self.addCleanup(c.close, self.handle)
        for name, answer in (("open_allocators", {0: self.handle}), ("open_allocator", self.handle)):
            patch = mock.patch.object(plugin, name, return_value=answer)
            patch.start()
            self.addCleanup(patch.stop)
        patches._told.clear()
        self.torch = stand_in(self.handle)
        self.answers = patches._Answers(self.torch)
        patches._answer(self.torch, self.answers)
        self.addCleanup(self.answers.history._remove)
        self.addCleanup(self.answers.history.stop)

    def told(self, call, *arguments):
        """The warnings of a call."""
        with warnings.catch_warnings(record=True) as lines:
            warnings.simplefilter("always")
            call(*arguments)
        return [str(line.message) for line in lines]

    def record(self, *more, enabled="all"):
        return self.told(self.torch._C._cuda_record_memory_history, enabled, "all", "all", 1000, False, *more)

    def actions(self):
        return [entry["action"] for entry in self.answers.history.snapshot()["device_traces"][0]]

    def test_torch_accelerator_has_the_same_figures(self):
        held = c.allocate(self.handle, 30 * MIB)
        ask = self.torch._C
        self.assertTrue(ask._accelerator_isAllocatorInitialized())
        self.assertEqual(ask._accelerator_getDeviceStats(0)["allocated_bytes"]["all"]["current"], 30 * MIB)
        c.free(self.handle, held)
        self.assertEqual(ask._accelerator_getDeviceStats(0)["reserved_bytes"]["all"]["current"], 30 * MIB)
        ask._accelerator_emptyCache()
        ask._accelerator_resetPeakStats(0)
        self.assertEqual(ask._accelerator_getDeviceStats(0)["reserved_bytes"]["all"],
                         {"current": 0, "peak": 0, "allocated": 30 * MIB, "freed": 30 * MIB})
        self.assertEqual(ask._accelerator_getMemoryInfo(0), (1, 2))
        self.assertEqual(self.torch.asked, [])

    def test_names_that_a_release_has_not_are_not_made(self):
        self.assertFalse(hasattr(self.torch._C, "_accelerator_resetAccumulatedStats"))
        self.assertFalse(hasattr(self.torch._C, "_cuda_cudaCachingAllocator_set_allocator_settings"))

    def test_actions_are_skipped(self):
        def turn():
            c.free(self.handle, c.allocate(self.handle, 2 * MIB))

        self.assertEqual(self.record(False, False, ["free_requested", "segment_alloc"], False, True), [])
        turn()
        self.assertEqual(self.actions(), ["alloc", "free_completed"])
        self.assertEqual(self.record(False, False, [], False, True), [])
        turn()
        self.assertEqual(self.actions(), ["alloc", "free_completed", "alloc", "free_requested", "free_completed"])
        [line] = self.record(False, False, ["frees"], False, True)
        self.assertIn("skip_actions of 'frees' is not served", line)

    def test_a_history_of_host_memory_is_told_of_once(self):
        more = (False, False, [], True, False)
        [line] = self.record(*more)
        self.assertIn("record_pinned_host_memory of torch.cuda.memory._record_memory_history is not served", line)
        self.assertIn("torch.cuda.host_memory_stats", line)
        self.assertFalse(self.answers.history.is_on, "record_cuda=False")
        self.assertEqual(self.record(*more), [])

    def test_older_releases_ask_for_less(self):
        self.assertEqual(self.told(self.torch._C._cuda_record_memory_history, "all", "all", "all", 7), [])
        self.assertEqual((self.answers.history.is_on, self.answers.history.max_entries), (True, 7))
        self.assertEqual(self.told(self.torch._C._cuda_record_memory_history, None), [])
        self.assertFalse(self.answers.history.is_on)
        self.torch._C._cuda_record_memory_history_legacy(True, True, 5)
        self.assertEqual((self.answers.history.is_on, self.answers.history.max_entries), (True, 5))
        self.torch._C._cuda_record_memory_history_legacy(False)
        self.assertFalse(self.answers.history.is_on)

    def test_what_pytorch_takes_and_does_nothing_with_is_told_of_once(self):
        ask = self.torch._C
        [line] = self.told(ask._accelerator_setAllocatorSettings, "max_split_size_mb:64")
        self.assertIn("torch.cuda.memory._set_allocator_settings is not served with Ashlar's allocator", line)
        self.assertIn("ashlar_gpu.torch.install", line)
        self.assertEqual(self.told(ask._accelerator_setAllocatorSettings, "max_split_size_mb:32"), [])
        self.assertEqual(self.told(ask._cuda_cudaCachingAllocator_enable, True), [])
        [line] = self.told(ask._cuda_cudaCachingAllocator_enable, False)
        self.assertIn("caching_allocator_enable(False) is not served", line)
        self.assertEqual([name for name, *_ in self.torch.asked],
                         ["_accelerator_setAllocatorSettings"] * 2 + ["_cuda_cudaCachingAllocator_enable"] * 2)


if __name__ == "__main__":
    unittest.main()
