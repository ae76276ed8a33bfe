"""How the library of PyTorch's class for allocators is found, built and refused, with a stand-in for torch. What it answers
once it is there, conformance/plugin.py asks with PyTorch.

    ASHLAR_PREFIX=build/release python3 torch_native_test.py
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import warnings
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

from ashlar_gpu import _library as c  # noqa: E402  (the path comes first)
from ashlar_gpu import _torch_native as native  # noqa: E402

STAND_IN = """
extern "C" const char* ashlar_torch_native_built_for() { return "%s"; }
extern "C" void* ashlar_torch_native_allocator() { return nullptr; }
extern "C" int ashlar_torch_native_install(const char*) { return 0; }
extern "C" int ashlar_torch_native_change(const char*, const char* conf) { return conf[0] == 'x' ? 2 : 0; }
"""


def stand_in(folder, version="2.14.1+cu130"):
    package = pathlib.Path(folder) / "site-packages" / "torch"
    package.mkdir(parents=True, exist_ok=True)
    return types.SimpleNamespace(__version__=version, __file__=str(package / "__init__.py"), compiled_with_cxx11_abi=lambda: True,
                                 version=types.SimpleNamespace(cuda="13.0", git_version="abc123"), _C=types.SimpleNamespace())


class NativeTest(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.torch = stand_in(held.name)
        patch = mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        patch.start()
        self.addCleanup(patch.stop)

    def compiled(self, built_for):
        """A file of its own each time: what is loaded stays."""
        source, made = self.folder / "stand_in.cc", self.folder / f"stand_in_{len(list(self.folder.iterdir()))}.so"
        source.write_text(STAND_IN % built_for, encoding="utf-8")
        subprocess.run(["c++", "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
        return made

    def library(self, built_for):
        return mock.patch.object(native, "_built", return_value=self.compiled(built_for))

    def prebuilt(self, named, built_for):
        """An installation with one library."""
        prefix = self.folder / f"prefix_{len(list(self.folder.iterdir()))}"
        (prefix / native.PREBUILT).mkdir(parents=True)
        os.replace(self.compiled(built_for), prefix / native.PREBUILT / (named.replace(" ", "-") + ".so"))
        return prefix

    def refused(self, words, call=None):
        with self.assertRaises(native.Unavailable) as refusal:
            (call or (lambda: native.Native.load(self.torch)))()
        self.assertIn(words, str(refusal.exception))
        self.assertNotIn("\n", str(refusal.exception))

    def test_a_library_for_another_pytorch_is_refused(self):
        runs = native.identity(self.torch)
        self.assertEqual(runs, "2.14.1 abi1 cuda13000 abc123")
        for other in ("2.14.0 abi1 cuda13000 abc123", "2.14.1 abi0 cuda13000 abc123", "2.14.1 abi1 cuda12080 abc123",
                      "2.14.1 abi1 cuda13000 abc124"):
            with self.library(other):
                self.refused(f"it was built for {other}, and {runs} runs")
        with self.library(runs):
            self.assertIsNone(native.Native.load(self.torch).allocator())

    def test_a_prebuilt_library_is_used_for_the_pytorch_that_it_names_alone(self):
        runs, other = native.identity(self.torch), "2.14.1 abi1 cuda13000 abc124"
        none = mock.patch.object(native, "_built", side_effect=native.Unavailable("it is compiled here"))
        for prefix, words in ((self.prebuilt(runs, runs), None), (self.prebuilt(other, other), "it is compiled here"),
                              (self.prebuilt(runs, other), f"it was built for {other}, and {runs} runs")):
            c.library()
            with none, mock.patch.object(native._native, "prefixes", return_value=[prefix]):
                if words:
                    self.refused(words)
                else:
                    self.assertIsNone(native.Native.load(self.torch).allocator())

    def test_a_prebuilt_library_that_does_not_load_is_passed_over(self):
        prefix, runs = self.prebuilt(native.identity(self.torch), "x"), native.identity(self.torch)
        (found,) = (prefix / native.PREBUILT).iterdir()
        found.write_bytes(b"of another machine")
        c.library()
        with self.library(runs), mock.patch.object(native._native, "prefixes", return_value=[prefix]):
            self.assertIsNone(native.Native.load(self.torch).allocator())

    def test_an_old_release_is_not_tried(self):
        self.torch.__version__ = "2.6.0+cu124"
        self.refused("PyTorch 2.6.0+cu124 is older than 2.12")

    def test_what_is_missing_is_named(self):
        with mock.patch.object(native._native, "prefixes", return_value=[self.folder]):
            self.refused("its sources are not installed")
        with mock.patch.dict(os.environ, CUDA_HOME=str(self.folder)):
            self.refused("CUDA's headers (cuda_runtime_api.h) are not there: set CUDA_HOME",
                         lambda: native._cuda_includes(self.torch))
        with mock.patch.object(native.shutil, "which", return_value=None):
            self.refused("there is no C++ compiler", native._compiler)

    def test_each_pytorch_and_each_source_has_a_file_of_its_own(self):
        sources = self.folder / "sources"
        sources.mkdir()
        (sources / "a.cc").write_text("int a;", encoding="utf-8")
        keys = [native._key(self.torch, sources)]
        keys.append(native._key(stand_in(str(self.folder), "2.15.0+cu130"), sources))
        (sources / "a.cc").write_text("int b;", encoding="utf-8")
        keys.append(native._key(self.torch, sources))
        self.assertEqual(len(set(keys)), 3)

    def test_a_compiler_that_fails_leaves_nothing_and_says_why(self):
        sources, target = self.folder / "sources", self.folder / "made" / native.LIBRARY
        sources.mkdir()
        target.parent.mkdir()
        (sources / "a.cc").write_text("#error no such thing\n", encoding="utf-8")
        command = lambda torch, folder, source, made: ["c++", "-c", f"-I{folder}", str(source), "-o", str(made)]
        with mock.patch.object(native, "_command", side_effect=command):
            self.refused("does not compile against this PyTorch's headers", lambda: native._compile(self.torch, sources, target))
            self.assertEqual(os.listdir(target.parent), [])
            (sources / "a.cc").write_text("int a;\n", encoding="utf-8")
            native._compile(self.torch, sources, target)
        self.assertEqual(os.listdir(target.parent), [native.LIBRARY])

    def test_pytorch_is_given_its_own_settings_only(self):
        conf = "compat:torch-latest,policy:ashlar,max_split_size_mb:64,memory_limit_mb:100"
        self.assertEqual(native.pytorchs_own(conf), "max_split_size_mb:64")

    def test_settings_that_change_are_added_to_those_in_force(self):
        given = []
        self.torch._C._accelerator_setAllocatorSettings = given.append
        with self.library(native.identity(self.torch)):
            found = native.Native.load(self.torch)
        found.install("compat:torch-latest,max_split_size_mb:64")
        self.torch._C._accelerator_setAllocatorSettings("max_split_size_mb:32,roundup_power2_divisions:4")
        self.assertEqual(given, ["max_split_size_mb:64", "max_split_size_mb:32,roundup_power2_divisions:4"])
        self.assertEqual(found._conf, "compat:torch-latest,max_split_size_mb:32,roundup_power2_divisions:4")
        found._conf = "x:1"
        with warnings.catch_warnings(record=True) as told, mock.patch.object(c, "last_error", return_value="cannot change"):
            warnings.simplefilter("always")
            self.torch._C._accelerator_setAllocatorSettings("max_split_size_mb:16")
        self.assertEqual([str(line.message) for line in told], ["ashlar: the allocator keeps its settings: cannot change"])
        self.assertEqual(found._conf, "x:1")


if __name__ == "__main__":
    unittest.main()
