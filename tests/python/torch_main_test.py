"""The command line `python -m ashlar_gpu.torch`, without PyTorch: install is a stand-in that says what it got.

conformance has the same with PyTorch over the hollow device.
"""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# `integration` is what the command line imports as ashlar_gpu.torch.
START = """
import sys, types
import ashlar_gpu
from ashlar_gpu import _torch_main
integration = types.ModuleType("ashlar_gpu.torch")
def install(conf, tune=None, interface=None):
    if conf == "wrong": raise ashlar_gpu.Error("ashlar: 'wrong' is no setting")
    if conf == "missing": raise ImportError("libashlar.so.1 was not found")
    print("conf", conf, *([tune] if tune else []), *([interface] if interface else []))
integration.install, ashlar_gpu.torch = install, integration
sys.modules["ashlar_gpu.torch"] = integration
_torch_main.main(sys.argv[1:])
"""
PROGRAM = "import os, sys\nprint(__name__, sys.argv[1:], os.path.basename(sys.path[0]))\n"


class TorchMain(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in ("scripts/train.py", "pkg/__init__.py", "pkg/__main__.py", "pkg/step.py"):
            path = os.path.join(self.folder.name, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write("" if "__init__" in name else PROGRAM)

    def run_main(self, *words):
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
        return subprocess.run([sys.executable, "-B", "-c", START, *words], env=environment, cwd=self.folder.name,
                              capture_output=True, text=True, check=False)

    def test_the_programs_own_arguments_stay_as_they_are(self):
        for words, conf, rest in (
                (["scripts/train.py", "--conf", "x", "-m", "--help"], None, ["--conf", "x", "-m", "--help"]),
                (["--conf", "a:1", "scripts/train.py", "--", "-x"], "a:1", ["--", "-x"]),
                (["--conf=a:1", "--", "scripts/train.py"], "a:1", [])):
            done = self.run_main(*words)
            self.assertEqual(done.stdout, f"conf {conf}\n__main__ {rest} scripts\n", done.stderr)

    def test_how_to_tune(self):
        done = self.run_main("--tune", "advise", "scripts/train.py", "--tune", "x")
        self.assertEqual(done.stdout, "conf None advise\n__main__ ['--tune', 'x'] scripts\n", done.stderr)
        self.assertIn("invalid choice: 'guess'", self.run_main("--tune", "guess", "scripts/train.py").stderr)

    def test_which_interface(self):
        done = self.run_main("--interface", "pluggable", "scripts/train.py", "--interface", "x")
        self.assertEqual(done.stdout, "conf None pluggable\n__main__ ['--interface', 'x'] scripts\n", done.stderr)
        self.assertIn("invalid choice: 'other'", self.run_main("--interface", "other", "scripts/train.py").stderr)

    def test_modules(self):
        for words, conf, rest in ((["-m", "pkg", "--conf", "x"], None, ["--conf", "x"]),
                                  (["--conf", "a:1", "-m", "pkg.step", "-m"], "a:1", ["-m"])):
            done = self.run_main(*words)
            self.assertTrue(done.stdout.startswith(f"conf {conf}\n__main__ {rest} "), done.stdout + done.stderr)

    def test_a_wrong_command_line_is_a_line(self):
        for words, says in ((["--conf"], "--conf: expected one argument"), ([], "which program?"),
                            (["--conf=a:1"], "which program?"), (["-m"], "-m: expected one argument"),
                            (["--unknown", "scripts/train.py"], "unrecognized arguments: --unknown")):
            done = self.run_main(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(says, done.stderr.splitlines()[-1])

    def test_what_cannot_be_done_is_a_line(self):
        for words, says in ((["none.py"], "ashlar: there is no file none.py"),
                            (["-m", "none.step"], "ashlar: there is no module none.step"),
                            (["--conf", "wrong", "scripts/train.py"], "ashlar: 'wrong' is no setting"),
                            (["--conf", "missing", "scripts/train.py"], "ashlar: libashlar.so.1 was not found")):
            done = self.run_main(*words)
            self.assertEqual((done.returncode, done.stderr), (1, says + "\n"))

    def test_help(self):
        done = self.run_main("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--conf SETTINGS", done.stdout)


if __name__ == "__main__":
    unittest.main()
