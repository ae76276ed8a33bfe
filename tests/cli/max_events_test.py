#!/usr/bin/env python3
"""--max-events: of a run that ended in a failure, the last events give the answer of all.

max_events_test.py PROGRAM SNAPSHOT [arguments of unittest]
"""

import json
import subprocess
import sys
import unittest

PROGRAM, SNAPSHOT = sys.argv.pop(1), sys.argv.pop(1)


def explain(*flags):
    ended = subprocess.run([PROGRAM, "explain", SNAPSHOT, "--json", *flags], capture_output=True, text=True)
    assert ended.returncode == 0, f"{flags}: {ended.returncode}\n{ended.stderr}"
    return json.loads(ended.stdout)


class MaxEventsTest(unittest.TestCase):
    def test_a_window_gives_the_answer_of_the_whole(self):
        whole = explain("--max-events", "0")
        for most in (6000, 5000, 4000):
            part = explain("--max-events", str(most))
            self.assertEqual(part["accounting"], whole["accounting"], most)
            self.assertEqual(part["verdict"], whole["verdict"], most)
            notes = [note for note in part["notes"] if note["name"] == "window"]
            self.assertEqual(len(notes), 1, most)
            self.assertIn(f"(--max-events {most})", notes[0]["message"])
            self.assertIn("1 request failed", notes[0]["message"])

    def test_enough_is_the_whole(self):
        self.assertEqual(explain("--max-events", "100000"), explain("--max-events", "0"))
        self.assertEqual(explain(), explain("--max-events", "0"))


if __name__ == "__main__":
    unittest.main()
