"""The Python blocks of docs/library/python.md run, in one process, and are worth what their comments say.

A line `expression  # 'literal'` is compared; a block after `<!-- not run: ... -->` is left out.
"""

import ast
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
PAGE = os.path.join(ROOT, "docs", "library", "python.md")
BLOCK = re.compile(r"^(<!-- not run: .*-->\n)?```python\n(.*?)^```$", re.M | re.S)
CLAIM = re.compile(r"^(?P<expression>\S.*?)  # (?P<literal>\(.*?\)|'.*?'|\d+)(?=$|: )")


def claims(code):
    """(expression, value) of the lines that say what they are worth."""
    found = [CLAIM.match(line) for line in code.splitlines()]
    return [(one["expression"], ast.literal_eval(one["literal"])) for one in found if one]


class Documents(unittest.TestCase):
    def test_every_block_does_what_it_says(self):
        with open(PAGE, encoding="utf-8") as text:
            blocks = [code for not_run, code in BLOCK.findall(text.read()) if not not_run]
        self.assertGreaterEqual(len(blocks), 4)
        space, checked = {"__name__": "__main__"}, 0
        hook, before = sys.excepthook, os.getcwd()
        os.chdir(ROOT)
        try:
            for code in blocks:
                exec(compile(code, PAGE, "exec"), space)
                for expression, value in claims(code):
                    self.assertEqual(eval(expression, space), value, expression)
                    checked += 1
        finally:
            sys.excepthook = hook
            os.chdir(before)
        self.assertEqual(checked, 4)

    def test_a_wrong_claim_would_be_seen(self):
        self.assertEqual(claims("len('ab')  # 2\nx = 3  # not a claim\nf(1)  # ('a', None): why\n"),
                         [("len('ab')", 2), ("f(1)", ("a", None))])


if __name__ == "__main__":
    unittest.main()
