#!/usr/bin/env python3
"""A large input that gets shorter while it is read: one line, and the exit code of an input that cannot be used.

cut_input_test.py PROGRAM [arguments of unittest]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
BYTES = 384 << 20  # mapped, and read for long enough to be cut


def is_mapped(process, path):
    try:
        return str(path) in pathlib.Path(f"/proc/{process.pid}/maps").read_text()
    except OSError:
        return False


class CutInputTest(unittest.TestCase):
    def test_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder).resolve() / "run.trace"
            for _ in range(5):  # where the machine was too fast for us
                path.write_bytes(b"a 1 512 0\n" + bytes(1 << 20).replace(b"\0", b"\n") * (BYTES >> 20))
                process = subprocess.Popen([PROGRAM, "explain", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           text=True)
                while process.poll() is None and not is_mapped(process, path):
                    time.sleep(0.0005)
                os.truncate(path, 4096)
                _, errors = process.communicate()
                if process.returncode != 0:
                    break
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertIn("run.trace: was cut short while it was read", errors)


if __name__ == "__main__":
    unittest.main()
