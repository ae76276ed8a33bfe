"""ashlar_gpu.report: the page of the program, as a notebook shows it.

    ASHLAR_PREFIX=build/release python3 report_test.py
"""

import html.parser
import os
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402
from ashlar_gpu import _html, _program  # noqa: E402

SNAPSHOT = os.path.join(ROOT, "docs", "examples", "training_oom.pickle")
MESSAGE = os.path.join(ROOT, "docs", "examples", "oom_message.txt")


class Frames(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.frames = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.frames.append((tag, dict(attrs)))


class Report(unittest.TestCase):
    def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it(self):
        page = ashlar_gpu.report(SNAPSHOT)
        ((tag, attributes),) = Frames(page._repr_html_()).frames
        self.assertEqual(tag, "iframe")
        self.assertEqual(attributes["srcdoc"], page.html)
        self.assertEqual(attributes["sandbox"], "allow-scripts")

    def test_a_saved_page_is_what_the_program_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = os.path.join(folder, "a", ""), os.path.join(folder, "b", "")
            os.mkdir(ours)
            os.mkdir(theirs)
            ashlar_gpu.report([SNAPSHOT, MESSAGE], capacity="12GiB").save(ours + "page.html")
            subprocess.run([_program.path(), "report", "--capacity", "12GiB", "-o", theirs + "page.html", "--", SNAPSHOT,
                            MESSAGE], check=True, stdout=subprocess.DEVNULL)
            with open(ours + "page.html", "rb") as one, open(theirs + "page.html", "rb") as other:
                self.assertEqual(one.read(), other.read())

    def test_without_html_it_is_a_line(self):
        self.assertRegex(repr(ashlar_gpu.report(MESSAGE)), r"^<Page: \d+ characters")

    def test_what_is_wrong_is_the_programs_line(self):
        with self.assertRaisesRegex(ashlar_gpu.Error, "no/such"):
            ashlar_gpu.report("no/such")
        with self.assertRaisesRegex(ashlar_gpu.Error, "--capacity"):
            ashlar_gpu.report(SNAPSHOT, capacity="much")


class Answers(unittest.TestCase):
    """What an answer shows of itself in a notebook."""

    def frame_of(self, answer):
        box, heading, (tag, attributes), *rest = Frames(answer._repr_html_()).frames
        self.assertEqual([box[0], heading[0]], ["div", "div"])
        self.assertEqual((tag, attributes["sandbox"], attributes["srcdoc"]), ("iframe", "allow-scripts", answer.page.html))
        self.assertEqual([tag for tag, _ in rest[:2]], ["details", "summary"])  # where frames are not shown
        return answer.page.html

    def test_an_explanation_is_its_page_of_the_same_run(self):
        answer = ashlar_gpu.explain(SNAPSHOT, capacity="12GiB", page=True)
        plain = ashlar_gpu.explain(SNAPSHOT, capacity="12GiB")
        self.assertIsNone(plain.page)
        self.assertEqual(answer, plain)
        self.assertEqual(pickle.loads(pickle.dumps(answer)).page, answer.page)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "page.html")
            subprocess.run([_program.path(), "explain", "--json-to", os.path.join(folder, "answer.json"), "--report", file,
                            "--capacity", "12GiB", "--color", "never", "--", SNAPSHOT], check=True, stdout=subprocess.DEVNULL)
            with open(file, encoding="utf-8") as text:
                self.assertEqual(self.frame_of(answer), text.read())

    def test_a_dry_run_and_an_estimate_too(self):
        estimate = ashlar_gpu.estimate(os.path.join(ROOT, "tests", "estimator", "configs", "bert-base-uncased.json"), batch=2,
                                       seq=64, page=True)
        self.assertIn("estimate", self.frame_of(estimate))
        without_device = ashlar_gpu.dry_run(["true"], page=True)
        self.assertIsNone(without_device.page)
        self.assertNotIn("iframe", without_device._repr_html_())

    def test_in_a_notebook_the_page_is_made_by_itself(self):
        shell = types.SimpleNamespace(kernel=None)
        with mock.patch.dict(sys.modules, IPython=types.SimpleNamespace(get_ipython=lambda: shell)):
            self.assertIsNone(ashlar_gpu.explain(SNAPSHOT).page)  # a terminal's IPython
            shell.kernel = object()
            shell.execution_count = 4
            answer = ashlar_gpu.explain(SNAPSHOT)
            self.frame_of(answer)
            # The heading: the cell and the verdict.
            for shown in (answer, ashlar_gpu.explain(MESSAGE)):
                self.assertIn(f">In[4]: {html.escape(shown.headline)}</div>", shown._repr_html_().split("<iframe")[0])
            self.assertIsNone(ashlar_gpu.explain(SNAPSHOT, page=False).page)
            self.assertIsNone(ashlar_gpu.explain(MESSAGE).page)  # there is nothing to look at but words

    def test_a_page_too_long_for_a_notebook_is_named(self):
        answer = ashlar_gpu.explain(SNAPSHOT, page=True)
        with mock.patch.object(_html, "MOST", 1000):
            shown = answer._repr_html_()
        self.assertNotIn("iframe", shown)
        self.assertIn('.page.save(&quot;page.html&quot;) writes it', shown)

    def test_a_cell_never_fails_for_it(self):
        answer = ashlar_gpu.explain(SNAPSHOT)
        object.__setattr__(answer, "accounting", None)
        self.assertIn("OUT OF MEMORY", answer._repr_html_())


if __name__ == "__main__":
    unittest.main()
