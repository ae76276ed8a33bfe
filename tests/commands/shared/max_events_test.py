#!/usr/bin/env python3
"""--max-events: of a run that ended in a failure, the last events give the answer of all; every command has the flag, and
says of every kind of input that it saw a part.

max_events_test.py PROGRAM SNAPSHOT [arguments of unittest]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SNAPSHOT = sys.argv.pop(1), sys.argv.pop(1)


def explain(*flags):
    ended = subprocess.run([PROGRAM, "explain", SNAPSHOT, "--json", *flags], capture_output=True, text=True)
    assert ended.returncode == 0, f"{flags}: {ended.returncode}\n{ended.stderr}"
    return json.loads(ended.stdout)


def run(*arguments):
    ended = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert ended.returncode in (0, 1), f"{arguments}: {ended.returncode}\n{ended.stderr}"
    return ended.stdout + ended.stderr


def native_log(pairs):
    rows = ["ashlar-native-log 1", "p 77 1000000"]
    for i in range(pairs):
        rows.append(f"a {10 * i} 0 {0x100000 * (i + 1):#x} 4096 0x0 0 cudaMalloc")
        if i >= 5:
            rows.append(f"d {10 * i + 5} {0x100000 * (i - 4):#x} 0 cudaFree")
    return "\n".join(rows + ["e 99999", ""])


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

    def test_every_command_says_that_it_saw_a_part(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("run.ashlar", "run.trace", "run.rmm.csv"):
                run("convert", SNAPSHOT, folder / name, *(["--to", "rmm"] if "rmm" in name else []))
            (folder / "run.log").write_text(native_log(200))
            for name in ("run.ashlar", "run.trace", "run.rmm.csv", "run.log"):
                path, flag = folder / name, ("--max-events", "300")
                is_trace = name in ("run.trace", "run.rmm.csv")
                part = "older requests summed" if is_trace else ", the last of "
                note = "older requests were summed" if is_trace else "older events of device 0 were summed"
                answer = run("explain", path, *flag)
                self.assertIn(part, answer, name)
                self.assertIn("(--max-events 300)", answer, name)
                self.assertNotIn("(--max-events", run("explain", path), name)
                self.assertIn(part, run("diff", path, path, *flag), name)
                converted = run("convert", path, folder / "out.pickle", *flag)
                # What a log lacks is kept in the file.
                self.assertIn(note, converted if name != "run.log" else run("explain", folder / "out.pickle"), name)
                self.assertIn(part, run("fleet", path, "--json", *flag), name)
                if name != "run.log":  # no allocator to replay
                    self.assertIn(note, run("replay", path, *flag), name)
                    self.assertIn(note, run("sweep", path, *flag, "--confs", "max_split_size_mb:32"), name)

    def test_a_recording_gives_the_answer_of_its_snapshot(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = f"{folder}/run.ashlar"
            run("convert", SNAPSHOT, recording)
            read = lambda *flags: json.loads(run("explain", recording, "--json", *flags))
            whole = read()
            for most in (6000, 4000):
                part = read("--max-events", str(most))
                self.assertEqual(part["accounting"], whole["accounting"], most)
                self.assertEqual(part["verdict"], whole["verdict"], most)


if __name__ == "__main__":
    unittest.main()
