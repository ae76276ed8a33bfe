"""plan as a user runs it: the file that it writes is followed by the other commands, and a bad one is told in one line.

    plan_test.py ASHLAR docs/examples/training_oom.pickle docs/schemas/plan.schema.json
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ASHLAR, EXAMPLE, SCHEMA = sys.argv[1], sys.argv[2], sys.argv[3]


def run(*arguments):
    done = subprocess.run([ASHLAR, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


class PlanTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.plan = pathlib.Path(self.folder.name) / "run.plan"

    def tearDown(self):
        self.folder.cleanup()

    def make(self):
        code, out, error = run("plan", EXAMPLE, "-o", self.plan, "--json")
        self.assertEqual((code, error), (0, ""))
        return json.loads(out)

    def test_the_run_fits_into_what_it_holds(self):
        answer = self.make()
        self.assertGreaterEqual(answer["with_plan"]["utilisation"], 0.99)
        self.assertGreater(answer["with_plan"]["utilisation"], answer["without_plan"]["utilisation"])
        for lane in answer["lanes"]:
            self.assertEqual(lane["planned"], lane["requests"])
        required = json.loads(pathlib.Path(SCHEMA).read_text())["$defs"]["plan"]["required"]
        self.assertEqual(sorted(answer), sorted(required))

    def test_a_trace_that_lost_its_beginning_says_so(self):
        code, out, error = run("plan", EXAMPLE, "-o", self.plan, "--json", "--repeats", "--max-events", 4000)
        self.assertEqual((code, error), (0, ""))
        notes = {note["name"]: note["count"] for note in json.loads(out)["notes"]}
        self.assertGreater(notes.get("starts_warm", 0), 0)
        self.assertNotIn("starts_warm", [note["name"] for note in self.make()["notes"]])

    def test_replay_follows_it_on_the_smallest_device(self):
        answer = self.make()
        least = answer["with_plan"]["smallest_device_bytes"]
        code, out, _ = run("replay", EXAMPLE, "--cold", "--json", "--conf", f"plan:{self.plan}", "--capacity", least,
                           "--context", 0)
        self.assertEqual(json.loads(out)["ooms"], 0)
        self.assertEqual(code, 0)
        _, out, _ = run("replay", EXAMPLE, "--cold", "--json", "--capacity", least, "--context", 0)
        self.assertGreater(json.loads(out)["ooms"], 0, "without the plan it is too small")

    def test_sweep_tries_it_beside_others(self):
        self.make()
        code, out, error = run("sweep", EXAMPLE, "--confs", f"plan:{self.plan};expandable_segments:True", "--json")
        self.assertEqual(code, 0, error)
        self.assertIn(f"plan:{self.plan}", out)

    def test_the_same_run_gives_the_same_plan(self):
        self.make()
        first = self.plan.read_bytes()
        self.make()
        self.assertEqual(self.plan.read_bytes(), first)

    def test_a_bad_plan_is_told_in_one_line(self):
        self.make()
        text = self.plan.read_bytes()
        for bad in (b"", text[: len(text) // 2], b"x" + text, text.replace(b"lane", b"lame"), bytes(range(256)) * 40):
            self.plan.write_bytes(bad)
            code, _, error = run("replay", EXAMPLE, "--conf", f"plan:{self.plan}")
            self.assertEqual(code, 2)
            self.assertEqual(error.count("\n"), 1, error)
            self.assertIn(str(self.plan), error)
            self.assertIn("ashlar plan TRACE -o FILE", error)

    def test_what_cannot_be_planned_says_why(self):
        self.assertEqual(run("plan", EXAMPLE)[0], 2)
        small = pathlib.Path(self.folder.name) / "small.trace"
        small.write_text("a 1 512 0\nf 1\n")
        code, _, error = run("plan", small, "-o", self.plan)
        self.assertNotEqual(code, 0)
        self.assertIn("without a plan it needs as little memory", error)
        self.assertFalse(self.plan.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
