#!/usr/bin/env python3
"""What a command prints fits a terminal of 80 and of 60 columns: tables lose columns, sentences are wrapped, and no row is cut
off by the terminal. A line to paste stays whole.

    columns_test.py ASHLAR SOURCE_DIR
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ASHLAR = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
del sys.argv[1:]
OOM = "docs/examples/training_oom.pickle"
ANSWERS = "docs/examples/answers"
HEALTHY = f"{ANSWERS}/healthy.pickle.xz"
LEAK = f"{ANSWERS}/leak.pickle.xz"
MODEL = "conformance/models/bert.json"

ANSWERED = [
    ["replay", OOM], ["replay", OOM, "--cold", "--capacity", "12GiB"],
    ["sweep", OOM],
    ["diff", OOM, HEALTHY], ["diff", LEAK, HEALTHY],
    ["bound", OOM], ["bound", HEALTHY],
    ["check", OOM, "--max-reserved", "11GiB", "--max-ooms", "0"],
    ["check", OOM, "--baseline", HEALTHY, "--max-growth", "3%"],
    ["fleet", OOM, LEAK],
    ["estimate", MODEL], ["estimate", MODEL, "--gpu", "T4"], ["estimate", MODEL, "--gpu", "T4", "--levers"],
]
HELPED = ["explain", "dry-run", "fit", "record", "report", "estimate", "sweep", "diff", "check", "fleet", "bound", "replay",
          "watch", "attach", "convert", "guide", "schema", "page", "mcp", "run-under", "plan", "tune", "run"]


def printed(columns, *command):
    ended = subprocess.run([ASHLAR, *command], cwd=ROOT, capture_output=True, text=True, timeout=120,
                           env={**os.environ, "COLUMNS": str(columns)})
    return ended.stdout


def to_paste(*command):
    """The lines of an explanation that a reader takes over as they are."""
    answers = json.loads(subprocess.run([ASHLAR, *command, "--json"], cwd=ROOT, capture_output=True, text=True,
                                        timeout=120).stdout)
    out = set()
    for answer in answers if isinstance(answers, list) else [answers]:
        for lines in [answer["next_lines"], *(one["lines"] for one in answer["actions"]),
                      *(one["python"] for one in answer["program_remedies"])]:
            out.update(line.strip() for line in lines)
    return out


def too_wide(text, columns, verbatim=()):
    def stays(line):
        words = line.strip()
        return words.startswith(("PASTE ", "ashlar ")) or any(words.endswith(one) for one in verbatim)
    return [line for line in text.splitlines() if len(line) > columns and not stays(line)]


class ColumnsTest(unittest.TestCase):
    def holds(self, command, verbatim=()):
        for columns in (80, 60):
            text = printed(columns, *command)
            with self.subTest(" ".join(map(str, command)), columns=columns):
                self.assertTrue(text.strip())
                self.assertEqual(too_wide(text, columns, verbatim), [])

    def test_explanations(self):
        for asked in [[OOM, "--capacity", "12GiB"], [OOM, "--device", "L4"],
                      *([str(file)] for file in sorted((ROOT / ANSWERS).iterdir()))]:
            command = ["explain", *asked]
            self.holds(command, to_paste(*command))

    def test_messages(self):
        cases = json.loads((ROOT / "tests/commands/explain/wordings.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            for name, case in cases.items():
                if case.get("nothing"):
                    continue
                file = pathlib.Path(folder) / f"{name}.txt"
                file.write_text("\n".join(case["text"]))
                self.holds(["explain", str(file)], to_paste("explain", str(file)))

    def test_other_answers(self):
        for command in ANSWERED:
            self.holds(command)

    def test_help(self):
        self.holds(["--help"])
        for name in HELPED:
            self.holds([name, "--help"])

    def test_a_line_that_is_too_wide_is_found(self):
        self.assertEqual(too_wide("a" * 61 + "\nshort\n  PASTE " + "b" * 80, 60), ["a" * 61])
        self.assertEqual(too_wide("FIX   " + "x" * 70, 60, {"x" * 70}), [])


if __name__ == "__main__":
    unittest.main()
