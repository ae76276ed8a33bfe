"""Values that lines of a program are given in the place of what they read of the device: `ashlar dry-run --value`.

    python3 reads_test.py [PATH OF ashlar]

Needs PyTorch, as fit_test.py does; else it is skipped. Without a path no program is run.
"""

import collections
import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

import fit_test
from python_test import PYTHON_SIDE

sys.path.insert(0, PYTHON_SIDE)
if len(sys.argv) > 1 and os.path.isfile(sys.argv[-1]):
    os.environ["ASHLAR_READS_TEST"] = os.path.abspath(sys.argv.pop())  # for the interpreter that has PyTorch as well
ASHLAR = [os.environ["ASHLAR_READS_TEST"]] if "ASHLAR_READS_TEST" in os.environ else []
PROGRAM = os.path.join(fit_test.HERE, "..", "..", "conformance", "programs", "decides.py")

# Everything that reads a value; what it gave is printed. The line of each is found by its name, behind the #.
READS = """
import json, torch
x = torch.randn(4, 3, device="cuda")
seen = {}
seen["item"] = x.sum().item()  # item
seen["int"] = int(x.argmax())  # int
seen["if"] = 1 if x.any() else 0  # if
seen["equal"] = torch.equal(x, x + 1)  # equal
seen["cpu"] = x.cpu().tolist()  # cpu
seen["tolist"] = x[0].tolist()  # tolist
seen["half"] = x.half().max().item()  # half
seen["nonzero"] = list(torch.nonzero(x > 1).shape)  # nonzero
seen["mask"] = list(x[x > 1].shape)  # mask
seen["unique"] = list(torch.unique(x.long()).shape)  # unique
seen["repeated"] = list(torch.repeat_interleave(x[0].long()).shape)  # repeated
seen["known"] = int(torch.tensor(5).cuda())  # known
seen["whole"] = int(x.argmin())  # whole
seen["two"] = [float(x[i, 0]) for i in range(3)]  # two
seen["never"] = 1  # never
print(json.dumps(seen))
"""


# Operations that come whole under inference_mode, and give a view or a copy.
INFERENCE = """
import json, sys, torch
with torch.inference_mode():
    x = torch.arange(6, device=sys.argv[1]).view(2, 3)
    copies = [x.t().reshape(6), x.t().contiguous(), x.float(), x.to(torch.zeros(1, dtype=torch.int32, device=sys.argv[1])), x.t().flatten()]
    seen = [x.cpu().tolist(), x.to("cpu", non_blocking=True, copy=True).tolist()] + [copy.tolist() for copy in copies]
    seen.append(torch.tensor([7, 8]).to(sys.argv[1]).tolist())
    seen.append(torch.eye(2, device=sys.argv[1]).to_sparse().to(torch.float64).shape)
    view = x.reshape(6)
    view += 1
    seen += [x.tolist(), view.tolist(), int(view.max())]
print(json.dumps(seen))
"""


def flag(text, name, value, file="program.py"):
    (line,) = [i for i, line in enumerate(text.splitlines(), 1) if line.endswith("# " + name)]
    return ["--value", "%s:%d=%s" % (file, line, value)]


class Flags(unittest.TestCase):
    def setUp(self):
        import torch
        from ashlar_hollow import reads

        self.torch, self.reads = torch, reads

    def test_a_file_is_named_by_the_end_of_its_path(self):
        for named, path, is_same in (("train.py", "/a/b/train.py", True), ("b/train.py", "/a/b/train.py", True),
                                     ("./train.py", "/a/train.py", True), ("/a/train.py", "/a/train.py", True),
                                     ("rain.py", "/a/train.py", False), ("/b/train.py", "/a/b/train.py", False)):
            self.assertEqual(self.reads.Flag(named + ":7=1").is_of(path), is_same, (named, path))

    def test_what_a_type_cannot_hold_is_not_given(self):
        cast, torch = self.reads._cast, self.torch
        self.assertEqual(cast(torch, 3.0, torch.int64), 3)
        self.assertIs(cast(torch, 1, torch.bool), True)
        self.assertEqual(cast(torch, True, torch.float32), 1.0)
        for number, dtype in ((0.5, torch.int64), (float("nan"), torch.int32), (float("inf"), torch.int32),
                              (300, torch.uint8), (-1, torch.uint8), (0.5, torch.bool), (2, torch.bool)):
            with self.assertRaises(ValueError, msg=(number, dtype)):
                cast(torch, number, dtype)

    def test_each_frame_s_line_is_that_of_the_innermost_of_its_file(self):
        reads = self.reads.Reads(self.torch, ["deep.py:2=1", "deep.py:5=2", "outer.py:2=3"])
        names = {"look": lambda: [f.text for f in reads._flags_here() or []]}
        exec(compile("def inner():\n  return look()\n\ndef outer():\n  return inner()", "/x/deep.py", "exec"), names)
        exec(compile("def other():\n  return look()\n\ndef outermost():\n  return other()", "/x/else.py", "exec"), names)
        exec(compile("def far(call):\n  return call()", "/x/outer.py", "exec"), names)
        self.assertEqual(names["outer"](), ["deep.py:2=1"])
        self.assertEqual(names["outermost"](), [])
        self.assertEqual(names["far"](names["outermost"]), ["outer.py:2=3"])


@unittest.skipIf(not ASHLAR, "no ashlar was given")
class Runs(unittest.TestCase):
    def dry_run(self, flags, program, *words):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "report.json")
            done = subprocess.run(ASHLAR + ["dry-run", "--capacity", "16GiB", "--names", "off", "--json-to", out] + flags +
                                  ["--", sys.executable, program, *words],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out) as report:
                return json.loads(done.stdout.splitlines()[-1]), json.load(report), " ".join(done.stderr.split())

    def test_each_read_is_given_its_line_s_value(self):
        given = collections.OrderedDict((
            ("item", "0.1"), ("int", "7"), ("if", "true"), ("equal", "true"), ("cpu", "inf"), ("tolist", "[1,2.5,3]"), ("half", "0.1"),
            ("nonzero", "5"), ("mask", "6"), ("unique", "3"), ("repeated", "256"), ("known", "9"), ("whole", "0.5"), ("never", "1")))
        flags = [word for name, value in given.items() for word in flag(READS, name, value)]
        flags += flag(READS, "two", "1.5") + flag(READS, "two", "2.5", "no_such_folder/program.py") + flag(READS, "two", "-1")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            with open(program, "w") as out:
                out.write(READS)
            seen, report, words = self.dry_run(flags + ["--lag", "until-waited"], program)
        self.assertIsInstance(seen.pop("whole"), int)
        self.assertEqual(seen, {
            "item": 0.10000000149011612, "int": 7, "if": 1, "equal": True, "cpu": [[float("inf")] * 3] * 4, "tolist": [1, 2.5, 3],
            "half": 0.0999755859375, "nonzero": [5, 2], "mask": [6], "unique": [3], "repeated": [256], "known": 9,
            "two": [1.5, -1, -1], "never": 1})
        told = {one["flag"].partition("program.py:")[2]: one for one in report["given_values"]}
        (whole,) = [one for one in told.values() if one["why_not"]]
        self.assertIn("a whole number", whole["why_not"])
        self.assertEqual([one["reads"] for one in told.values()], [1] * 12 + [0, 0, 1, 0, 2])
        self.assertIn("(once)", words)
        self.assertIn("read no value of the device; lines that did: program.py:5 <module> (once)", words)
        made_up = [line["line"] for line in report["made_up"]["lines"]]
        self.assertEqual(len(made_up), 1, made_up)  # the read that was given none

    def test_under_inference_mode_values_are_those_of_the_host(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program.py")
            with open(program, "w") as out:
                out.write(INFERENCE)
            seen, report, words = self.dry_run([], program, "cuda")
            plain = subprocess.run([sys.executable, program, "cpu"], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(seen, json.loads(plain))
        self.assertNotIn("no small values", words)

    def test_memory_is_as_where_the_program_has_the_values(self):
        sys.path.insert(0, os.path.dirname(PROGRAM))
        values = importlib.import_module("decides").VALUES
        with open(PROGRAM) as source:
            text = source.read()
        flags = [word for name in values for value in values[name] for word in flag(text, "reads: " + name, json.dumps(value), "decides.py")]
        given, _, _ = self.dry_run(flags, PROGRAM, *values)
        written, _, _ = self.dry_run([], PROGRAM, "written", *values)
        plain, _, _ = self.dry_run([], PROGRAM, *values)
        self.assertEqual(given["did"], {"stop": 3, "wait": 256, "batch": 37, "rows": 1000})
        self.assertEqual(given["did"], written["did"])
        for name in values:
            self.assertEqual(given["peaks"][name], written["peaks"][name], name)
            self.assertNotEqual(given["peaks"][name], plain["peaks"][name], name)


if __name__ == "__main__":
    fit_test.need_torch()
    unittest.main()
