"""ashlar_gpu.report: the page of the program, as a notebook shows it.

    ASHLAR_PREFIX=build/release python3 report_test.py
"""

import html.parser
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ashlar_gpu  # noqa: E402
from ashlar_gpu import _program  # noqa: E402

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
            subprocess.run([_program.path(), "report", SNAPSHOT, MESSAGE, "--capacity", "12GiB", "-o",
                            theirs + "page.html"], check=True, stdout=subprocess.DEVNULL)
            with open(ours + "page.html", "rb") as one, open(theirs + "page.html", "rb") as other:
                self.assertEqual(one.read(), other.read())

    def test_without_html_it_is_a_line(self):
        self.assertRegex(repr(ashlar_gpu.report(MESSAGE)), r"^<Page: \d+ characters")

    def test_what_is_wrong_is_the_programs_line(self):
        with self.assertRaisesRegex(ashlar_gpu.Error, "no/such"):
            ashlar_gpu.report("no/such")
        with self.assertRaisesRegex(ashlar_gpu.Error, "--capacity"):
            ashlar_gpu.report(SNAPSHOT, capacity="much")


if __name__ == "__main__":
    unittest.main()
