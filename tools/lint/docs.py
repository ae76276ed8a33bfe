#!/usr/bin/env python3
"""Rules of the documents: they point to names, never to line numbers, and no link is dead."""

import pathlib
import re

import lint_tree
from lint_tree import Finding, Sample

LINE_NUMBER = re.compile(r"\.(h|cc|cu|cuh|py|cmake|txt|md):\d+|#L\d+|\blines? \d+", re.IGNORECASE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(root, path):
    """The numbered lines outside fenced blocks: program output may show file:line, prose may not."""
    inside = False
    for number, text in lint_tree.lines(root, path):
        if text.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            yield number, text


def check_link(root, path, number, target):
    if re.match(r"[a-z]+:", target) or target.startswith("#"):
        return []
    file = pathlib.Path(root) / pathlib.PurePath(path).parent / target.split("#")[0]
    return [] if file.exists() else [Finding("link", path, number, f"there is no {target}: mend the link")]


def check(root):
    findings = []
    for path in lint_tree.files(root, {".md"}):
        for number, text in prose(root, path):
            if LINE_NUMBER.search(text):
                findings.append(Finding("line-number", path, number, "name the function or the section, not its line"))
            for target in LINK.findall(text):
                findings += check_link(root, path, number, target)
    return findings


GOOD = {
    "README.md": "[docs](docs/a.md#part) and [web](https://example.org/x) and [here](#part)\n",
    "docs/a.md": "```\noptimizer.py:211 step\n```\n[up](../README.md), in a line of 3 words\n",
}
SAMPLES = [
    Sample("", GOOD),
    Sample("line-number", GOOD | {"docs/b.md": "see heap.cc:120\n"}),
    Sample("line-number", GOOD | {"docs/b.md": "see `Heap`, line 12\n"}),
    Sample("line-number", GOOD | {"docs/b.md": "[x](a.md#L12)\n"}),
    Sample("link", GOOD | {"docs/b.md": "[x](gone.md)\n"}),
]

if __name__ == "__main__":
    lint_tree.main("docs", check, SAMPLES)
