"""A snapshot that was made under Windows gets the answer of the same one made under Linux: paths with drives and backslashes tell the
program's own lines, PyTorch's and those of packages apart as others do.

    windows_paths_test.py ASHLAR     # over the snapshots of docs/examples, their paths rewritten
"""

import lzma
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples"
ASHLAR = sys.argv.pop(1)


def as_of_windows(part):
    """The part of a snapshot with each frame's path as Python has it there."""
    if isinstance(part, dict):
        return {key: [windows_frame(one) for one in value] if key == "frames" else as_of_windows(value)
                for key, value in part.items()}
    return [as_of_windows(one) for one in part] if isinstance(part, list) else part


def windows_frame(frame):
    path = frame["filename"]
    return dict(frame, filename="C:" + path.replace("/", "\\") if path.startswith("/") else path)


def explained(data):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "snapshot.pickle")
        with open(file, "wb") as out:
            out.write(data)
        return subprocess.run([ASHLAR, "explain", file], stdout=subprocess.PIPE, check=True, text=True).stdout


def without_marks(text):
    return text.replace("C:\\", "/").replace("\\", "/").splitlines()


class WindowsPaths(unittest.TestCase):
    def test_the_answer_is_the_same(self):
        files = sorted(EXAMPLES.glob("answers/*.pickle.xz")) + [EXAMPLES / "training_oom.pickle"]
        changed = 0
        for file in files:
            data = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
            moved = pickle.dumps(as_of_windows(pickle.loads(data)), protocol=4)
            changed += moved.count(b"C:\\")
            with self.subTest(file.name):
                self.assertEqual(without_marks(explained(moved)), without_marks(explained(data)))
        self.assertGreater(changed, 20, "paths were rewritten")


if __name__ == "__main__":
    unittest.main()
