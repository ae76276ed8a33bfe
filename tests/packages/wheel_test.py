#!/usr/bin/env python3
"""The wheel in a fresh virtual environment: it installs, and its commands, libraries and module work.

wheel_test.py WHEEL [arguments of unittest]. A part whose tool or environment is missing is skipped with the reason.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import program_checks as checks

WHEEL = pathlib.Path(sys.argv.pop(1)).resolve()
VENVS = pathlib.Path(os.environ.get("ASHLAR_REAL_VENVS") or pathlib.Path.home() / ".cache/ashlar/venvs")  # of conformance
TORCH = VENVS / "torch-2.14.1/bin/python"
PLUGIN = """
import ashlar_gpu.torch
ashlar_gpu.torch.install()
import torch
kept = [torch.empty(30 << 20, device="cuda", dtype=torch.uint8) for _ in range(4)]
print("reserved", torch.cuda.memory_reserved() >> 20)
try:
    torch.empty(200 << 30, device="cuda", dtype=torch.uint8)
except torch.OutOfMemoryError:
    print("caught")
"""
BY_CLASS = """
import sys
import torch
torch.version.git_version = sys.argv[1] if len(sys.argv) > 1 else torch.version.git_version
import ashlar_gpu.torch
ashlar_gpu.torch.install()
kept = torch.empty(30 << 20, device="cuda", dtype=torch.uint8)
print("interface", ashlar_gpu.torch.interface(), torch.cuda.memory_reserved() >> 20)
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ashlar_wheel_"))
        cls.bin = cls.folder / "venv/bin"
        subprocess.check_call([sys.executable, "-m", "venv", cls.folder / "venv"])
        checks.run(cls.bin / "pip", "install", "--no-index", "--disable-pip-version-check", WHEEL)
        (cls.package,) = (cls.folder / "venv/lib").glob("python*/site-packages/ashlar_gpu")
        cls.native = cls.package / "_native"

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_commands(self):
        checks.check_version(self.bin / "ashlar")
        checks.check_version(self.bin / "ashlar-gpu")
        self.assertEqual(checks.run(self.bin / "python", "-m", "ashlar_gpu", "--version").strip(), checks.VERSION)

    def test_an_error_keeps_its_exit_code(self):
        text = checks.run(self.bin / "ashlar", "explain", "/nowhere", code=3)
        self.assertIn("No such file", text)

    def test_explain(self):
        checks.check_explain(self.bin / "ashlar")

    def test_dry_run(self):
        checks.check_dry_run(self.bin / "ashlar", self.bin / "python", self.folder)

    def test_dry_run_of_pytorch(self):
        if not TORCH.exists():
            self.skipTest(f"no environment with PyTorch: there is no {TORCH} (tools/test real makes it)")
        checks.check_torch(self.bin / "ashlar", TORCH, self.folder)

    def test_plugin_of_pytorch(self):
        """It shares C++'s library with PyTorch: what it throws is caught there."""
        if not TORCH.exists():
            self.skipTest("no environment with PyTorch: see test_dry_run_of_pytorch")
        text = checks.run(self.bin / "ashlar", "dry-run", "--device", "T4", "--", TORCH, "-c", PLUGIN, cwd=self.folder,
                          environment={"PYTHONPATH": str(self.package.parent)})
        self.assertIn("reserved 120\ncaught\n", text)

    def by_class(self, *arguments):
        """A program that installs Ashlar where there is no compiler, and nothing that was built before."""
        empty = {"PATH": str(self.folder / "no-programs"), "XDG_CACHE_HOME": str(self.folder / "cache"),
                 "PYTHONPATH": str(self.package.parent)}
        return checks.run(self.bin / "ashlar", "dry-run", "--device", "T4", "--", TORCH, "-c", BY_CLASS, *arguments,
                          cwd=self.folder, environment=empty)

    def test_class_of_pytorch_without_a_compiler(self):
        if not TORCH.exists():
            self.skipTest("no environment with PyTorch: see test_dry_run_of_pytorch")
        if not list(self.native.glob("lib/ashlar/torch_prebuilt/2.14.1-*.so")):
            self.skipTest("the wheel was built without libraries for PyTorch: see tools/torch_headers")
        text = self.by_class()
        self.assertIn("interface native 30\n", text)
        self.assertNotIn("pluggable", text)
        text = self.by_class("f" * 40)  # a build of the same release by somebody else
        self.assertIn("interface pluggable 30\n", text)
        self.assertIn("PyTorch's pluggable interface is used, which offers less than its own: there is no C++ compiler", text)

    def test_what_is_for_pytorch_takes_its_libraries_from_the_process(self):
        if not shutil.which("readelf"):
            self.skipTest("no readelf")
        for library in self.native.glob("lib/ashlar/torch_prebuilt/*.so"):
            text = checks.run("readelf", "--dynamic", "--wide", library)
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
            self.assertLessEqual({"libc10.so", "libc10_cuda.so", "libashlar.so.1"}, set(needed))
            self.assertTrue(any(re.fullmatch(r"libcudart\.so\.\d+", name) for name in needed), needed)
            self.assertEqual(re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text), ["$ORIGIN/../.."])

    def test_module(self):
        code = "import ashlar_gpu, ashlar_gpu._native as n; print(n.program()); print(n.library('libashlar.so.1'))"
        lines = checks.run(self.bin / "python", "-c", code).splitlines()
        self.assertEqual(lines, [str(self.native / "bin/ashlar"), str(self.native / "lib/libashlar.so.1")])
        self.assertTrue((self.package / "py.typed").exists())

    def test_version_and_schemas(self):
        code = "import ashlar_gpu; print(ashlar_gpu.__version__)"
        self.assertEqual(checks.run(self.bin / "python", "-c", code).strip(), checks.VERSION)
        for name in checks.run(self.bin / "ashlar", "schema").split():
            schema = json.loads(checks.run(self.bin / "ashlar", "schema", name))
            self.assertTrue(schema["$id"].endswith(f"/{name}.schema.json"), name)

    def test_entry_points(self):
        code = ("import importlib.metadata as m, importlib.util as u\n"
                "for point in m.distribution('ashlar-gpu').entry_points: print(point.name, bool(u.find_spec(point.module)))")
        lines = checks.run(self.bin / "python", "-c", code).splitlines()
        self.assertIn("ashlar True", lines)
        self.assertEqual([line for line in lines if not line.endswith("True")], [])

    def test_answers_of_the_module(self):
        code = f"import ashlar_gpu; print(ashlar_gpu.explain({str(checks.ROOT / 'docs/examples/training_oom.pickle')!r}))"
        self.assertIn("fragmentation", checks.run(self.bin / "python", "-c", code))

    def test_page_of_the_analyzer(self):
        page = self.native / "lib/ashlar/ashlar.html"
        if not page.exists():
            self.skipTest("the wheel was built without the page: tools/web makes it")
        self.assertEqual(checks.run(self.bin / "ashlar", "page").strip(), str(page))
        self.assertIn("Content-Security-Policy", page.read_text()[:20000])

    def test_c_program(self):
        if not shutil.which("cc"):
            self.skipTest("no C compiler")
        library = self.native / "lib/libashlar.so.1"
        checks.run("cc", "-Wall", "-Werror", checks.HERE / "client.c", "-I", self.native / "include", library, "-o",
                   self.folder / "client", f"-Wl,-rpath,{library.parent}")
        self.assertRegex(checks.run(self.folder / "client"), rf"^{re.escape(checks.VERSION)}: out of memory")

    def test_exports(self):
        if not shutil.which("nm"):
            self.skipTest("no nm")
        libraries = [path for path in self.native.rglob("*.so*") if path.parent.name != "shims"]  # those have no names
        self.assertGreater(len(libraries), 3)
        for library in libraries:
            checks.check_exports(library)

    def test_name_and_licences(self):
        self.assertRegex(WHEEL.name, r"^ashlar_gpu-[\d.]+-py3-none-manylinux_2_(1\d|2[0-8])_\w+\.whl$")
        with zipfile.ZipFile(WHEEL) as archive:
            names = archive.namelist()
            (notices,) = [name for name in names if name.endswith("dist-info/licenses/THIRD_PARTY_NOTICES")]
            text = archive.read(notices).decode()
            metadata = archive.read(notices.replace("licenses/THIRD_PARTY_NOTICES", "METADATA")).decode()
        self.assertIn("License: Apache-2.0", metadata)
        for part in ("Abseil 20220623", "zlib 1.", "JSON for Modern C++ 3.", "CLI11 2.", "libstdc++ and libgcc of GCC 1"):
            self.assertIn(part, text)

    def test_each_file_once(self):
        # One source, which runs in the package and in programs that do not have it, as the tree's links say; a wheel has none.
        package, hollow = checks.ROOT / "python" / "ashlar_gpu", checks.ROOT / "hollow" / "python"
        of_both = []
        for place, _, names in os.walk(package, followlinks=True):
            for file in (pathlib.Path(place) / name for name in names if name.endswith(".py")):
                if hollow in file.resolve().parents and file.stat().st_size > 1000:
                    of_both.append(sorted([f"ashlar_gpu/_native/lib/ashlar/python/{file.resolve().relative_to(hollow)}",
                                           f"ashlar_gpu/{file.relative_to(package)}"]))
        self.assertGreater(len(of_both), 1)
        # What is compiled on the user's machine has the header beside it: where it lies no header need be installed.
        of_both.append([f"ashlar_gpu/_native/{folder}/ashlar.h" for folder in ("include", "lib/ashlar/torch_native")])
        seen = {}
        with zipfile.ZipFile(WHEEL) as archive:
            for entry in archive.infolist():
                if entry.file_size > 1000:
                    seen.setdefault(hashlib.sha256(archive.read(entry)).hexdigest(), []).append(entry.filename)
        self.assertEqual(sorted(sorted(names) for names in seen.values() if len(names) > 1), sorted(of_both))

    def test_pages(self):
        page = self.folder / "venv/share/man/man1/ashlar.1"
        self.assertIn("dry\\-run", page.read_text())
        self.assertTrue((self.folder / "venv/share/bash-completion/completions/ashlar").exists())


if __name__ == "__main__":
    unittest.main()
