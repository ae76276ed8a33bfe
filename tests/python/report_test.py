"""ashlar_gpu.report: the page of the program, as a notebook shows it.

    ASHLAR_PREFIX=build/release python3 report_test.py
"""

import base64
import gzip
import hashlib
import html.parser
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402
from ashlar_gpu import _frame, _html, _program  # noqa: E402

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


def packed(frame, name):
    """What a frame holds packed; None: nothing of that name."""
    found = re.search(f'<script type="application/octet-stream" id="packed-{name}">([^<]*)</script>', frame)
    return None if found is None else gzip.decompress(base64.b64decode(found[1])).decode()


def between(text, begin, end):
    return text.partition(begin)[2].partition(end)[0]


def sha256(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def srcdoc(shown):
    (frame,) = [attributes for tag, attributes in Frames(shown).frames if tag == "iframe"]
    return frame["srcdoc"]


class Notebook:
    """A kernel as IPython shows it to the package: `run` is a run of a cell."""

    def __init__(self):
        self.shell = types.SimpleNamespace(kernel=object(), execution_count=0, get_parent=lambda: self.asked)
        self.patches = [mock.patch.dict(sys.modules, IPython=types.SimpleNamespace(get_ipython=lambda: self.shell)),
                        mock.patch.object(_frame, "_shown", _frame._Shown())]

    def __enter__(self):
        for patch in self.patches:
            patch.start()
        return self

    def __exit__(self, *error):
        for patch in self.patches:
            patch.stop()

    def run(self, cell, answer):
        self.shell.execution_count += 1
        self.asked = {"metadata": {"cellId": cell}}
        return answer._repr_html_()


class Report(unittest.TestCase):
    def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it(self):
        page = ashlar_gpu.report(SNAPSHOT)
        ((tag, attributes),) = Frames(page._repr_html_()).frames
        self.assertEqual((tag, attributes["sandbox"]), ("iframe", "allow-scripts"))
        frame, html_of = attributes["srcdoc"], page.html
        self.assertEqual(packed(frame, "document"), between(html_of, 'id="ashlar-document">', "</script>"))
        program = json.loads(packed(frame, "program"))
        self.assertEqual(program, {"style": between(html_of, "<style>", "</style>"), "script": html_of.rpartition("<script>")[2].partition("</script>")[0]})
        blobs = re.compile(r'<script type="application/octet-stream" id="ashlar-blob-\d+">[^<]+</script>')
        self.assertEqual(blobs.findall(frame), blobs.findall(html_of))
        self.assertGreater(len(blobs.findall(frame)), 1)
        # Nothing but this program and what starts it may run.
        policy = between(frame, 'http-equiv="Content-Security-Policy" content="', '"')
        start = frame.rpartition("<script>")[2].partition("</script>")[0]
        self.assertIn(f"default-src 'none'; script-src {sha256(start)} {sha256(program['script'])}; style-src {sha256(program['style'])};", policy)

    def test_the_pages_program_lies_in_a_notebook_once(self):
        page = ashlar_gpu.report(SNAPSHOT)
        with Notebook() as book:
            def has_program(cell):
                return packed(srcdoc(book.run(cell, page)), "program") is not None

            self.assertEqual([has_program(cell) for cell in "abcd"], [True, False, False, False])
            self.assertTrue(has_program("a"))  # its old output is gone
            self.assertEqual([has_program(cell) for cell in "bc"], [False, False])  # of a, which ran after them
            self.assertTrue(has_program("b"))  # again by itself: perhaps a is not there
            self.assertEqual([has_program(cell) for cell in "ca"], [False, False])
            self.assertIsNone(packed(srcdoc(page._repr_html_()), "program"))  # twice in one run
        with Notebook() as book:  # another kernel
            self.assertTrue(has_program("d"))

    def test_a_page_of_another_make_is_shown_whole(self):
        self.assertEqual(srcdoc(_frame.of("<p>&amp;</p>")), "<p>&amp;</p>")

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
        before, frame, after = re.split("(?s)(<iframe .*</iframe>)", answer._repr_html_())
        self.assertEqual({tag for tag, _ in Frames(before).frames} - {"div", "pre"}, set())
        small, whole = json.loads(packed(srcdoc(frame), "document")), json.loads(between(answer.page.html, 'id="ashlar-document">', "</script>"))
        same = ("title", "command", "diff", "estimate", "dry_run", "fleet")
        self.assertEqual({key: small[key] for key in same}, {key: whole[key] for key in same})
        self.assertEqual([one["explanation"] for one in small["inputs"]], [one["explanation"] for one in whole["inputs"]])
        self.assertIn("in short</summary>", after)  # where frames are not shown
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
        self.assertIn("PARAMETERS", estimate._repr_html_().rpartition("in short</summary>")[2].upper())  # it has no rows of its own
        without_device = ashlar_gpu.dry_run(["true"], page=True)
        self.assertIsNone(without_device.page)
        self.assertNotIn("iframe", without_device._repr_html_())

    def test_in_a_notebook_the_page_is_made_by_itself(self):
        with Notebook() as book:
            kernel, book.shell.kernel = book.shell.kernel, None
            self.assertIsNone(ashlar_gpu.explain(SNAPSHOT).page)  # a terminal's IPython
            book.shell.kernel, book.shell.execution_count, book.asked = kernel, 4, {}
            answer = ashlar_gpu.explain(SNAPSHOT)
            self.frame_of(answer)
            # The heading: the cell and the verdict.
            for shown in (answer, ashlar_gpu.explain(MESSAGE)):
                self.assertIn(f">In[4]: {html.escape(shown.headline)}</div>", shown._repr_html_().split("<iframe")[0])
            self.assertIsNone(ashlar_gpu.explain(SNAPSHOT, page=False).page)
            self.assertIsNone(ashlar_gpu.explain(MESSAGE).page)  # there is nothing to look at but words

    def test_what_to_do_stands_above_the_page(self):
        answer = ashlar_gpu.explain(SNAPSHOT, capacity="12GiB", page=True)
        head = answer._repr_html_().partition("<iframe")[0]
        self.assertLess(head.find(html.escape(answer.headline)), head.find(">FIX<"))
        self.assertIn(html.escape(answer.actions[0].lines[0]), head.partition(">FIX<")[2])
        self.assertIn(">TRY FIRST<", ashlar_gpu.explain(MESSAGE)._repr_html_())

    def test_an_output_after_the_first_is_small(self):
        answer = ashlar_gpu.explain(SNAPSHOT, capacity="12GiB", page=True)
        with Notebook() as book:
            first, second = book.run("a", answer), book.run("b", answer)
        self.assertLess(len(second), 40_000)
        self.assertGreater(len(first), 2 * len(second))

    def test_a_page_too_long_for_a_notebook_is_named(self):
        answer = ashlar_gpu.explain(SNAPSHOT, page=True)
        with mock.patch.object(_html, "MOST", 10_000):
            shown = answer._repr_html_()
        self.assertNotIn("iframe", shown)
        self.assertIn('.page.save(&quot;page.html&quot;) writes it', shown)

    def test_a_cell_never_fails_for_it(self):
        answer = ashlar_gpu.explain(SNAPSHOT)
        object.__setattr__(answer, "accounting", None)
        self.assertIn("OUT OF MEMORY", answer._repr_html_())


if __name__ == "__main__":
    unittest.main()
