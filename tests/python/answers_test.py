"""The answers of the package ashlar_gpu, of the documents' own examples and of models that lie in the tree.

    ASHLAR_PREFIX=build/release python3 answers_test.py
"""

import dataclasses
import html.parser
import json
import os
import pickle
import subprocess
import sys
import tempfile
import typing
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402
from ashlar_gpu import _decode, _html, _program  # noqa: E402

SNAPSHOT = os.path.join(ROOT, "docs", "examples", "training_oom.pickle")
MESSAGE = os.path.join(ROOT, "docs", "examples", "oom_message.txt")
MODEL = os.path.join(ROOT, "tests", "estimator", "configs", "bert-base-uncased.json")


def printed(*arguments):
    """What the program prints, asked for in the shell's way."""
    return subprocess.run([_program.path(), *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()


class Balanced(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for key, value in attrs if key in ("src", "href") or "url(" in (value or "")]
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes another tag")


class Explain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answer = ashlar_gpu.explain(SNAPSHOT, capacity="12GiB")

    def test_is_what_the_program_says(self):
        self.assertEqual(str(self.answer), printed("explain", SNAPSHOT, "--capacity", "12GiB"))
        self.assertEqual(self.answer.json, json.loads(printed("explain", SNAPSHOT, "--capacity", "12GiB", "--json")))

    def test_fields_are_typed(self):
        self.assertEqual(self.answer.verdict, "fragmentation")
        account = self.answer.accounting
        self.assertEqual(account.total_bytes, account.reserved_bytes + account.outside_bytes + account.free_bytes)
        self.assertIn("expandable_segments:True", self.answer.paste)
        self.assertTrue(all(cause.finding == "found" for cause in self.answer.found))
        self.assertEqual(self.answer.found[0].name, self.answer.json["causes"][0]["name"])
        self.assertLess(len(self.answer.found), len(self.answer.causes))
        self.assertIsInstance(self.answer.what_if, tuple)

    def test_answers_do_not_change(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            self.answer.verdict = "healthy"

    def test_the_package_has_its_version(self):
        self.assertRegex(ashlar_gpu.__version__, r"^\d+\.\d+\.\d+")
        self.assertFalse(hasattr(ashlar_gpu, "nothing_of_it"))

    def test_survives_pickle(self):
        self.assertEqual(pickle.loads(pickle.dumps(self.answer)), self.answer)

    def test_repr_is_one_line(self):
        self.assertEqual(len(repr(self.answer).splitlines()), 1)
        self.assertIn("638.03 MiB requested", repr(self.answer))

    def test_a_text_an_exception_and_a_file_say_the_same(self):
        with open(MESSAGE, encoding="utf-8") as file:
            text = file.read()
        of_file = ashlar_gpu.explain(MESSAGE)
        self.assertEqual(ashlar_gpu.explain(text).headline, of_file.headline)
        self.assertEqual(ashlar_gpu.explain(RuntimeError(text.strip())).request_interval_bytes,
                         of_file.request_interval_bytes)

    def test_an_exception_that_came_of_an_out_of_memory_error(self):
        with open(MESSAGE, encoding="utf-8") as file:
            text = file.read().strip()
        try:
            try:
                raise RuntimeError(text)
            except RuntimeError as error:
                raise ValueError("the step failed") from error
        except ValueError as error:
            self.assertEqual(ashlar_gpu.explain(error).headline, ashlar_gpu.explain(text + "\n").headline)

    def test_a_snapshot_as_a_dict(self):
        with open(SNAPSHOT, "rb") as file:
            snapshot = pickle.load(file)
        self.assertEqual(ashlar_gpu.explain(snapshot, capacity="12GiB").text, self.answer.text)

    def test_another_card_is_answered_in_a_notebook(self):
        answer = ashlar_gpu.explain(SNAPSHOT, device="L4")
        self.assertIn("L4", answer.elsewhere.sentence)
        shown = answer._repr_html_()
        self.assertIn("WOULD IT FIT", shown)
        self.assertIn(html.escape(answer.elsewhere.sentence), shown)
        self.assertNotIn("WOULD IT FIT", self.answer._repr_html_())

    def test_several_files_make_several_answers(self):
        answer = ashlar_gpu.explain([SNAPSHOT, SNAPSHOT])
        self.assertEqual(len(answer.others), 1)
        self.assertEqual(answer.others[0].verdict, answer.verdict)


class Errors(unittest.TestCase):
    def failing(self, call, *words):
        with self.assertRaises(ashlar_gpu.Error) as raised:
            call()
        text = str(raised.exception)
        self.assertEqual(len(text.splitlines()), 1, text)
        for word in words:
            self.assertIn(word, text)

    def test_each_is_one_line_that_says_what(self):
        self.failing(lambda: ashlar_gpu.explain("/nowhere.pickle"), "/nowhere.pickle")
        self.failing(lambda: ashlar_gpu.explain(7), "int")
        self.failing(lambda: ashlar_gpu.explain([]), "empty")
        self.failing(lambda: ashlar_gpu.explain(SNAPSHOT, capacity="16"), "--capacity")
        self.failing(lambda: ashlar_gpu.explain("no such message\nin this text\n"), "the message: ")
        self.failing(lambda: ashlar_gpu.explain(7), "an int cannot")
        self.failing(lambda: ashlar_gpu.sweep([]), "nothing to read")
        self.failing(lambda: ashlar_gpu.dry_run(None), "None cannot be run", "a list of words")
        self.failing(lambda: ashlar_gpu.dry_run(b"true"), "a bytes cannot be run")
        self.failing(lambda: ashlar_gpu.dry_run("ls 'a b"), "No closing quotation", "a list of words")
        self.failing(lambda: ashlar_gpu.dry_run(print, args=3), "args is an int")
        self.failing(lambda: ashlar_gpu.dry_run(print, args="word"), "args is a str")
        self.failing(lambda: ashlar_gpu.dry_run(print, kwargs=3), "kwargs is an int")
        self.failing(lambda: ashlar_gpu.estimate({"model_type": "unheard_of"}), "unheard_of")
        self.failing(lambda: ashlar_gpu.estimate(True), "truth value")
        self.failing(lambda: ashlar_gpu.sweep(MESSAGE), "oom_message.txt")
        self.failing(lambda: ashlar_gpu.dry_run([]), "nothing to run")
        self.failing(lambda: ashlar_gpu.dry_run(["true"], args=(1,)), "function")

    def test_an_exception_of_another_kind(self):
        self.failing(lambda: ashlar_gpu.explain(ValueError("hi\nthere")), "is no out-of-memory error: ValueError: hi")
        self.failing(lambda: ashlar_gpu.explain([SNAPSHOT, KeyError("hi")]), "is no out-of-memory error: KeyError: 'hi'")
        self.failing(lambda: ashlar_gpu.explain(ValueError("hi"), capacity="16"), "--capacity")

    def test_files_of_our_own_are_not_named(self):
        with open(MESSAGE, encoding="utf-8") as file:
            text = file.read()
        for source in ([SNAPSHOT, "x\n" + text], RuntimeError(text), text, RuntimeError("CUDA out of memory.")):
            answer = ashlar_gpu.explain(source)
            for one in (answer, *answer.others):
                self.assertNotIn(tempfile.gettempdir() + os.sep + "ashlar-", one.text + json.dumps(one.json))
        self.failing(lambda: ashlar_gpu.explain({"a": 1}), "the snapshot: ")

    def test_a_folder_of_ours_that_is_not_there(self):
        code = "import ashlar_gpu; ashlar_gpu.explain('x out of memory\\n')"
        environment = {"PYTHONPATH": os.path.join(ROOT, "python"), "PATH": "/nowhere", "ASHLAR_PREFIX": "/none/at/all"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, check=False)
        self.assertIn("ASHLAR_PREFIX is /none/at/all, which is no folder", done.stderr.decode().splitlines()[-1])

    def test_a_missing_program(self):
        code = "import ashlar_gpu; ashlar_gpu.explain('x out of memory\\n')"
        environment = {"PYTHONPATH": os.path.join(ROOT, "python"), "PATH": "/nowhere"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, check=False)
        self.assertIn("Error: the program ashlar was not found", done.stderr.decode())

    def test_an_answer_of_another_version(self):
        with self.assertRaisesRegex(ashlar_gpu.Error, "'verdict'.*one wheel"):
            _decode.decode(ashlar_gpu.Explanation, {"source": "", "headline": ""}, text="", json={}, others=())


class Others(unittest.TestCase):
    def test_estimate_of_a_file_a_dict_a_config_and_a_count(self):
        of_file = ashlar_gpu.estimate(MODEL, batch=2, seq=64)
        with open(MODEL, encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual(ashlar_gpu.estimate(config, batch=2, seq=64).interval, of_file.interval)

        class Config:
            def to_dict(self):
                return config

        self.assertEqual(ashlar_gpu.estimate(Config(), batch=2, seq=64).interval, of_file.interval)
        self.assertEqual(ashlar_gpu.estimate(7_000_000).model.parameters, 7_000_000)
        self.assertEqual(of_file.asked.batch, 2)

    def test_estimate_of_any_module_takes_names_and_shapes(self):
        class Parameter:
            shape = (50, 7)

        class Module:
            def named_parameters(self):
                return [("wte.weight", Parameter()), ("head.weight", Parameter())]

        self.assertEqual(ashlar_gpu.estimate(Module()).model.parameters, 700)

    def test_sweep(self):
        answer = ashlar_gpu.sweep(SNAPSHOT, capacity="12GiB", confs=["", "expandable_segments:True"])
        self.assertEqual({row.conf for row in answer.rows}, {"", "expandable_segments:True"})
        self.assertIn("expandable_segments:True", answer.paste)
        self.assertFalse(answer.is_search)

    def test_dry_run_of_a_program_without_a_device(self):
        code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(5)"
        run = ashlar_gpu.dry_run([sys.executable, "-c", code], capacity="4GiB")
        self.assertEqual((run.exit_code, run.stdout, run.stderr.strip()), (5, "out\n", "err"))
        self.assertIsNone(run.fits)
        self.assertTrue(run.text.startswith("DRY RUN"), run.text)

    def test_dry_run_of_a_function(self):
        seen = []  # a closure, and by value: what the other process appends is not here

        def body(path, *, word):
            seen.append(word)
            with open(path, "w") as out:
                out.write(f"{word} {seen} {os.getpid()}")

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "told")
            run = ashlar_gpu.dry_run(body, args=(path,), kwargs={"word": "hello"}, capacity="4GiB")
            self.assertEqual(run.exit_code, 0, run.stderr)
            with open(path) as told:
                word, before, pid = told.read().split()
        self.assertEqual((word, before, seen), ("hello", "['hello']", []))
        self.assertNotEqual(int(pid), os.getpid())

    def test_the_program_in_this_process_place(self):
        done = subprocess.run([sys.executable, "-m", "ashlar_gpu", "explain", MESSAGE], stdout=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}, check=True)
        self.assertEqual(done.stdout.decode(), printed("explain", MESSAGE))


class Html(unittest.TestCase):
    def test_is_whole_and_needs_nothing_from_elsewhere(self):
        for answer in (ashlar_gpu.explain(SNAPSHOT, capacity="12GiB"), ashlar_gpu.explain(MESSAGE),
                       ashlar_gpu.sweep(SNAPSHOT, confs=[""]), ashlar_gpu.estimate(7_000_000)):
            page = Balanced(answer._repr_html_())
            self.assertEqual((page.open, page.addresses), ([], []))
            self.assertNotIn("script", page.tags)

    def test_the_bar_is_as_wide_as_the_memory(self):
        parts = _html.parts_of(ashlar_gpu.explain(SNAPSHOT, capacity="12GiB").accounting)
        self.assertEqual(sum(part.size_bytes for part in parts), 12 << 30)

    def test_what_a_program_named_is_text(self):
        answer = dataclasses.replace(ashlar_gpu.explain(MESSAGE), headline="<script>alert(1)</script>")
        self.assertNotIn("script", Balanced(answer._repr_html_()).tags)


class Types(unittest.TestCase):
    def test_are_those_of_the_schemas(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "python", "make_results.py"), "--check"],
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout.decode()), (0, ""))

    def test_hold_what_they_say(self):
        self.check(ashlar_gpu.explain(SNAPSHOT, capacity="12GiB"))
        self.check(ashlar_gpu.estimate(MODEL, batch=2, seq=64, levers=True))

    def check(self, value):
        for name, kind in typing.get_type_hints(type(value)).items():
            if name not in ("causes", "verdict") or dataclasses.is_dataclass(value):
                self.check_kind(getattr(value, name), kind, f"{type(value).__name__}.{name}")

    def check_kind(self, value, kind, where):
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is typing.Union:
            if value is not None:
                self.check_kind(value, inner[0], where)
        elif origin is typing.Literal:
            self.assertIn(value, inner, where)
        elif origin is tuple:
            for one in value:
                self.check_kind(one, inner[0], where)
        elif dataclasses.is_dataclass(kind):
            self.check(value)
        elif kind is float:
            self.assertIsInstance(value, (int, float), where)
        elif isinstance(kind, type):
            self.assertIsInstance(value, kind, where)


if __name__ == "__main__":
    unittest.main()
