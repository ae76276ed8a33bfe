"""Runs pytest_plugin_cases.py, where pytest is there."""

import importlib.util
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "python")


class PytestPlugin(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("pytest") is None, "pytest is not installed for this Python")
    def test_cases(self):
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "pytester", "-p", "no:cacheprovider",
                   os.path.join(HERE, "pytest_plugin_cases.py")]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": PACKAGE}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
