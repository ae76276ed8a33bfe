#!/usr/bin/env python3
"""What to do stands at most three lines down: in every answer that docs/guide/first_lines.md shows, which docs.commands holds to the
program, and in what `ashlar explain` says of each message of wordings.json, on a terminal of 80 columns too.

    first_lines_test.py ASHLAR
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs/guide/first_lines.md"
ASHLAR = pathlib.Path(sys.argv.pop(1)).resolve()
ACTION = re.compile(r"(FIX|TRY FIRST|NEXT|FIT)(  |$)")
MOST_BEFORE = 3


def lines_before(answer):
    """How many lines stand before what to do; None where nothing is to do."""
    return next((number for number, line in enumerate(answer) if ACTION.match(line)), None)


def answers_of(page):
    """The lines of each block that shows an answer, but for those of how it was before."""
    found, block, text = [], None, ""
    for line in page.splitlines():
        if line.startswith("```"):
            if block is not None and "before there was FIX" not in text:
                found.append([one for one in block if not one.startswith("$ ")])
            block = [] if block is None else None
        elif block is not None:
            block.append(line)
        elif line and not line.startswith("<!--"):
            text = line
    return found


def explained(file, columns):
    """The lines of an answer on a terminal of so many columns; none where there is no answer."""
    environment = {**os.environ, "COLUMNS": columns} if columns else None
    ended = subprocess.run([ASHLAR, "explain", file], capture_output=True, text=True, timeout=60, env=environment)
    return ended.stdout.splitlines() if ended.returncode == 0 else []


class FirstLinesTest(unittest.TestCase):
    def test_of_the_page(self):
        answers = answers_of(PAGE.read_text())
        self.assertGreater(len(answers), 12)
        for answer in answers:
            with self.subTest(answer[0]):
                self.assertIn(lines_before(answer), range(MOST_BEFORE + 1), "\n".join(answer[:8]))

    def test_of_messages(self):
        judged = 0
        with tempfile.TemporaryDirectory() as folder:
            for name, case in json.loads((HERE / "wordings.json").read_text()).items():
                file = pathlib.Path(folder) / f"{name}.txt"
                file.write_text("\n".join(case["text"]))
                for columns in ("", "80"):
                    answer = explained(file, columns)
                    if answer and answer[0].startswith("OUT OF"):
                        judged += 1
                        with self.subTest(name, columns=columns):
                            self.assertIn(lines_before(answer), range(MOST_BEFORE + 1), "\n".join(answer[:8]))
        self.assertGreater(judged, 80)

    def test_an_answer_without_one_is_found(self):
        self.assertIsNone(lines_before(["OUT OF MEMORY", "VERDICT        leak", "WHERE"]))
        self.assertEqual(lines_before(["a", "b", "c", "d", "FIX            x"]), 4)


if __name__ == "__main__":
    unittest.main()
