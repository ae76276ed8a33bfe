"""The names of vLLM's cumem and of torch_memory_saver (ashlar_gpu.sleepers), over memory of the host with stand-ins for
PyTorch's pools; and, where these packages are, their signatures and what calls them, unchanged.

    ASHLAR_PREFIX=build/release python3 sleepers_test.py

Packages are looked for in this Python, and in the environments of conformance/venvs.py.
"""

import ast
import contextlib
import ctypes
import functools
import glob
import importlib.util
import inspect
import logging
import os
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

import torch_stand_in
from torch_stand_in import MIB, ROOT, Graph, c

sys.path.append(os.path.join(ROOT, "conformance"))

import venvs  # noqa: E402  (the path comes first)


class Sleepers(torch_stand_in.OverHostMemory):
    def setUp(self):
        super().setUp()
        self.ashlar = self.installed()
        self.sleepers = self.module("sleepers")
        self.allocator = self.sleepers.CuMemAllocator.get_instance()
        self.saver = self.sleepers.torch_memory_saver
        self.addCleanup(self.end_pools)

    def end_pools(self):
        self.allocator.close()
        self.ashlar._tags = None
        del self.allocator, self.saver

    def filled(self, scope, size_bytes, value):
        """The address of a block that was allocated within the scope."""
        with scope:
            address = self.allocate(size_bytes)
        ctypes.memset(address, value, size_bytes)
        return address

    def holds(self, address, size_bytes, value):
        return ctypes.string_at(address, size_bytes) == bytes([value]) * size_bytes

    def is_asleep(self, *addresses):
        return [c.is_asleep(self.handle, address) for address in addresses]


class CuMemTest(Sleepers):
    def setUp(self):
        super().setUp()
        pool = self.allocator.use_memory_pool
        self.assertEqual(self.allocator.get_current_usage(), 0)  # what vLLM asks before it loads weights
        self.weights = self.filled(pool(tag="weights"), 3 * MIB, 7)
        self.cache = self.filled(pool("kv_cache"), 3 * MIB, 1)
        self.other = self.filled(pool(), 1000, 5)

    def test_one_instance(self):
        self.assertIs(self.sleepers.get_mem_allocator_instance(), self.sleepers.CuMemAllocator.get_instance())
        self.assertTrue(self.sleepers.cumem_available)
        self.ashlar._installed = None
        self.assertFalse(self.sleepers.cumem_available)

    def test_what_is_not_offloaded_is_lost(self):
        self.allocator.sleep(offload_tags=("weights", "runtime"))
        self.assertEqual(self.reserved(), 0)
        self.assertEqual(self.allocator.get_current_usage(), 42 * MIB)
        self.allocator.wake_up()
        self.assertTrue(self.holds(self.weights, 3 * MIB, 7))
        self.assertFalse(self.holds(self.cache, 3 * MIB, 1))  # fresh pages of the host are zero
        self.assertFalse(self.holds(self.other, 1000, 5))

    def test_without_tags_the_default_is_kept(self):
        self.allocator.sleep()
        self.allocator.wake_up()
        self.assertTrue(self.holds(self.other, 1000, 5))
        self.assertFalse(self.holds(self.weights, 3 * MIB, 7))

    def test_a_wake_by_tags_leaves_weights_and_cache_alone_asleep(self):
        self.allocator.sleep("weights")
        self.allocator.wake_up(["weights"])
        self.assertEqual(self.is_asleep(self.weights, self.cache, self.other), [False, True, False])
        self.allocator.wake_up(tags=["kv_cache"])
        self.assertEqual(self.is_asleep(self.weights, self.cache, self.other), [False, False, False])
        self.allocator.sleep("weights")
        self.allocator.wake_up(tags=[])
        self.assertEqual(self.is_asleep(self.weights, self.cache, self.other), [True, True, False])

    def test_discard(self):
        self.allocator.discard("kv_cache")
        self.assertEqual(self.is_asleep(self.weights, self.cache, self.other), [False, True, False])
        self.allocator.wake_up()
        self.allocator.discard(("weights", "nobody"))
        self.allocator.wake_up(["weights"])
        self.assertFalse(self.holds(self.weights, 3 * MIB, 7))

    def test_what_sleeps_stays_kept(self):
        self.allocator.sleep("weights")
        for other in (lambda: self.allocator.discard("weights"), lambda: self.allocator.sleep("kv_cache")):
            with self.assertWarnsRegex(UserWarning, "what sleeps already stays kept or lost as it is"):
                other()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.allocator.sleep("weights")
            self.allocator.wake_up()
            self.allocator.sleep("kv_cache")  # another way, since it was awake
        self.allocator.wake_up()
        self.assertFalse(self.holds(self.weights, 3 * MIB, 7))

    def test_freed_memory_goes_back_with_the_pools(self):
        for address in (self.weights, self.cache, self.other):
            c.free(self.handle, address)
        self.allocator.release_pools()
        self.assertEqual((self.allocator.get_current_usage(), self.reserved()), (0, 0))

    def test_a_graph_s_memory_of_cudaMalloc_stays_awake(self):
        with self.allocator.cudagraph_pool() as pool, self.torch.cuda.graph(Graph(), pool=pool):
            output = self.allocate(3 * MIB)
        with self.assertWarnsRegex(UserWarning, "CUDA graphs stays awake: it sleeps under expandable_segments:True or policy"):
            self.allocator.sleep("weights")
        self.assertEqual(self.is_asleep(self.weights, output), [True, False])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.allocator.wake_up()
            self.allocator.sleep("weights")  # the warning was said


class GraphsTest(Sleepers):
    CONF = "expandable_segments:True"

    def test_a_graph_s_memory_sleeps_with_the_tag_cudagraph(self):
        with self.allocator.cudagraph_pool() as pool, self.torch.cuda.graph(Graph(), pool=pool):
            output = self.allocate(3 * MIB)
        with self.allocator.cudagraph_pool() as again:
            self.assertEqual(again, pool)
        ctypes.memset(output, 9, 3 * MIB)
        self.assertEqual(self.allocator.get_current_usage(), 20 * MIB)
        self.allocator.sleep(("weights", "runtime", "cudagraph"))
        self.assertEqual(self.is_asleep(output), [True])
        self.allocator.wake_up(["weights"])
        self.assertTrue(self.holds(output, 3 * MIB, 9))

    def test_of_the_memory_saver(self):
        first, second, other = Graph(), Graph(), Graph()
        with self.saver.cuda_graph(first, tag="graphs", enable_cpu_backup=True):
            kept = self.allocate(3 * MIB)
        with self.saver.cuda_graph(second, pool=first.pool(), tag="graphs"):  # it shares what the first needs
            shared = self.allocate(3 * MIB)
        with self.saver.cuda_graph(other, tag="others"):
            lost = self.allocate(3 * MIB)
        for address in (kept, shared, lost):
            ctypes.memset(address, 9, 3 * MIB)
        self.saver.pause("graphs")
        self.assertEqual(self.is_asleep(kept, shared, lost), [True, True, False])
        self.saver.pause()
        self.saver.resume()
        self.assertEqual([self.holds(address, 3 * MIB, 9) for address in (kept, shared, lost)], [True, True, False])

    def test_a_pool_without_graphs_is_no_more(self):
        graph = Graph()
        with self.saver.cuda_graph(graph):
            output = self.allocate(3 * MIB)
        c.free(self.handle, output)
        del graph
        self.torch.cuda.empty_cache()
        self.saver.pause()
        self.saver.resume()


class MemorySaverTest(Sleepers):
    def test_each_region_sleeps_its_own_way(self):
        region = self.saver.region
        with tempfile.TemporaryDirectory() as folder:
            kept = self.filled(region("weights", enable_cpu_backup=True), 3 * MIB, 7)
            lost = self.filled(region("weights"), 3 * MIB, 1)
            stored = self.filled(region("weights", enable_disk_backup=True), 3 * MIB, 5)
            made = os.path.join(folder, "made", "here")
            self.saver.set_disk_backup_dir(made)
            with mock.patch.object(c, "sleep", side_effect=c.sleep) as sleep:
                self.saver.pause("weights")
            self.assertEqual([call.args[2:5:2] for call in sleep.call_args_list],
                             [(keep, made) for keep in (c.KEEP_NOTHING, c.KEEP_HOST, c.KEEP_FILE)])
            self.assertEqual(self.reserved(), 0)
            self.saver.resume("weights")
        self.assertEqual([self.holds(kept, 3 * MIB, 7), self.holds(lost, 3 * MIB, 1), self.holds(stored, 3 * MIB, 5)],
                         [True, False, True])

    def test_by_tag_and_all(self):
        weights, cache = (self.filled(self.saver.region(tag), 3 * MIB, 1) for tag in ("weights", "kv_cache"))
        self.saver.pause("nobody")
        self.saver.pause("kv_cache")
        self.assertEqual(self.is_asleep(weights, cache), [False, True])
        self.saver.pause()
        self.saver.resume(tag="weights")
        self.assertEqual(self.is_asleep(weights, cache), [False, True])
        self.saver.resume()
        self.assertEqual(self.is_asleep(weights, cache), [False, False])

    def test_disabled_within_a_region(self):
        with self.saver.region("weights"):
            self.allocate(3 * MIB)
            with self.saver.disable():
                outside = self.allocate(3 * MIB)
                with self.assertRaisesRegex(RuntimeError, "no region is open in this thread"), self.saver.disable():
                    pass
        self.saver.pause()
        self.assertEqual(self.is_asleep(outside), [False])
        with self.assertRaisesRegex(RuntimeError, "no region is open in this thread"), self.saver.disable():
            pass

    def test_what_cannot_be_had_is_one_line(self):
        with self.assertWarnsRegex(UserWarning, "memory_margin_bytes is not kept: set per_process_memory_fraction") as told:
            self.saver.memory_margin_bytes = 1 << 30
            self.saver.memory_margin_bytes = 1 << 31
        self.assertEqual(len(told.warnings), 1)
        with self.assertWarnsRegex(UserWarning, "retain_cpu_backup stays off"):
            self.saver.retain_cpu_backup = True
        self.assertFalse(self.saver.retain_cpu_backup)
        with self.assertWarnsRegex(UserWarning, "\"mmap\" is page-locked memory here"), \
                self.saver.region(enable_cpu_backup=True, cpu_backup_backend="mmap"):
            block = self.allocate(3 * MIB)
        tensor = types.SimpleNamespace(data_ptr=lambda: block, device=0)
        self.assertIsNone(self.saver.get_cpu_backup(tensor))
        self.saver.pause()
        with self.assertRaisesRegex(NotImplementedError, "what sleeps is not read: resume it"):
            self.saver.get_cpu_backup(tensor)
        for wrong, says in (({"enable_cpu_backup": True, "enable_disk_backup": True}, "enable one"),
                            ({"cpu_backup_backend": "pinned"}, "requires enable_cpu_backup=True"),
                            ({"enable_cpu_backup": True, "cpu_backup_backend": "disk"}, "and not 'disk'")):
            with self.assertRaisesRegex(ValueError, says), self.saver.region(**wrong):
                pass

    def test_before_install(self):
        self.ashlar._installed = None
        self.assertFalse(self.saver.enabled)
        for scope in (self.saver.region(), self.allocator.use_memory_pool()):
            with self.assertRaisesRegex(c.Error, "PyTorch has its own allocator: call install first"), scope:
                pass


@functools.cache
def folder_of(package):
    """Where its files are."""
    with contextlib.suppress(ValueError):
        if found := importlib.util.find_spec(package):
            return os.path.dirname(found.origin)
    found = sorted(glob.glob(os.path.join(venvs.folder(), "*", "lib", "python3*", "site-packages", package)))
    if not found:
        raise unittest.SkipTest(f"{package} is not installed, neither here nor in {venvs.folder()}")
    return found[0]


def parameters(function):
    """(name, whether it may be left out) of those that a caller gives."""
    out = [(one.name, one.default is not one.empty) for one in inspect.signature(function).parameters.values()]
    return [one for one in out if one[0] != "self"]


def parameters_in(node):
    names = [one.arg for one in node.args.args]
    needed = len(names) - len(node.args.defaults)
    return [(name, place >= needed) for place, name in enumerate(names) if name != "self"]


class SignaturesTest(Sleepers):
    """By the packages' sources; they are not imported."""

    def expect_same(self, path, theirs, ours):
        """Each public name of the class `theirs`: its parameters; of an attribute that it is there."""
        with open(path, encoding="utf-8") as source:
            [of] = [one for one in ast.parse(source.read()).body if isinstance(one, ast.ClassDef) and one.name == theirs]
        functions = [one for one in of.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")]
        self.assertGreater(len(functions), 6)
        for function in functions:
            decorators = {ast.unparse(one) for one in function.decorator_list}
            if "property" in decorators or any(one.endswith(".setter") for one in decorators):
                self.assertTrue(hasattr(type(ours), function.name) or hasattr(ours, function.name), function.name)
            else:
                self.assertEqual(parameters(getattr(ours, function.name)), parameters_in(function), function.name)

    def test_of_vllm(self):
        folder = os.path.join(folder_of("vllm"), "device_allocator")
        self.expect_same(os.path.join(folder, "cumem.py"), "CuMemAllocator", self.allocator)
        with open(os.path.join(folder, "__init__.py"), encoding="utf-8") as source:
            tags = [ast.literal_eval(one.value) for one in ast.parse(source.read()).body
                    if isinstance(one, ast.AnnAssign) and one.target.id == "DEFERRABLE_TAGS"]
        self.assertEqual(tags, [self.sleepers.DEFERRABLE_TAGS])

    def test_of_torch_memory_saver(self):
        self.expect_same(os.path.join(folder_of("torch_memory_saver"), "entrypoint.py"), "TorchMemorySaver", self.saver)


def run_file(path, **modules):
    """What an installed file defines, with these modules in place of those that it imports."""
    with mock.patch.dict(sys.modules, {name.replace("__", "."): module for name, module in modules.items()}):
        spec = importlib.util.spec_from_file_location("of_" + os.path.basename(path)[:-3], path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def module_of(name, **has):
    out = types.ModuleType(name)
    out.__dict__.update(has)
    return out


class CallersTest(Sleepers):
    """The packages' own code, which calls ours."""

    def test_vllm_s_backend_of_sleep_mode(self):
        backend_module = run_file(os.path.join(folder_of("vllm"), "device_allocator", "sleep_mode_backend.py"),
                                  vllm=module_of("vllm"), vllm__logger=module_of("vllm.logger", init_logger=logging.getLogger))
        pool = self.allocator.use_memory_pool
        weights, cache, state = (self.filled(pool(tag=tag), 3 * MIB, 7) for tag in ("weights", "kv_cache", "runtime"))
        backend = backend_module.CuMemBackend()
        with mock.patch.dict(sys.modules, {"vllm": module_of("vllm"), "vllm.device_allocator": self.sleepers}):
            backend.suspend(level=1)
            self.assertEqual(self.reserved(), 0)
            backend.resume(["weights"])
            self.assertEqual(self.is_asleep(weights, cache, state), [False, True, False])
            backend.resume()
            self.assertEqual([self.holds(one, 3 * MIB, 7) for one in (weights, cache, state)], [True, False, True])
            backend.discard(("kv_cache",))
            self.assertEqual(self.is_asleep(weights, cache, state), [False, True, False])
            backend.resume()
            backend.suspend(level=2)
            backend.resume()
        self.assertEqual([self.holds(one, 3 * MIB, 7) for one in (weights, state)], [False, True])

    def test_vllm_s_pool_of_graphs(self):
        told = []
        graphs = run_file(
            os.path.join(folder_of("vllm"), "compilation", "cudagraph_pool.py"), vllm=module_of("vllm"),
            vllm__config=module_of("vllm.config", VllmConfig=object), vllm__device_allocator=self.sleepers,
            vllm__distributed__device_communicators__pynccl_allocator=module_of("nccl", set_graph_pool_id=told.append),
            vllm__platforms=module_of("vllm.platforms", current_platform=None))
        with graphs.capture_pool(None, types.SimpleNamespace(use_cumem_cudagraph_pool=True)) as pool:
            with self.torch.cuda.graph(Graph(), pool=pool):
                self.allocate(3 * MIB)
        self.assertEqual(told, [pool])
        self.assertEqual(self.allocator.get_current_usage(), 20 * MIB)

    def test_sglang_s_adapter(self):
        file = run_file(
            os.path.join(folder_of("sglang"), "srt", "utils", "torch_memory_saver_adapter.py"),
            torch_memory_saver=self.sleepers, sglang=module_of("sglang"),
            sglang__srt__utils__common=module_of("common", is_xpu=lambda: False))
        adapter = file.TorchMemorySaverAdapter.create(enable=True)
        self.assertTrue(adapter.enabled)
        with adapter.configure_subprocess():
            pass
        weights = self.filled(adapter.region("weights", enable_cpu_backup=True), 3 * MIB, 7)
        cache = self.filled(adapter.region("kv_cache"), 3 * MIB, 1)
        with adapter.region("weights"), adapter.disable():
            self.allocate(3 * MIB)
        with adapter.cuda_graph(cuda_graph=Graph(), pool=None, stream=None, tag="cuda_graph", enable_cpu_backup=True):
            self.allocate(3 * MIB)
        for tag in ("kv_cache", "weights"):
            adapter.pause(tag)
        self.assertEqual(self.is_asleep(weights, cache), [True, True])
        with self.assertWarnsRegex(UserWarning, "the memory of CUDA graphs stays awake"):
            adapter.pause("cuda_graph")
        for tag in ("cuda_graph", "weights", "kv_cache"):
            adapter.resume(tag)
        self.assertTrue(self.holds(weights, 3 * MIB, 7))
        self.assertEqual(self.is_asleep(cache), [False])


if __name__ == "__main__":
    unittest.main()
