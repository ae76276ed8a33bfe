#!/usr/bin/env python3
"""Small rules of every source file: length, width, unfinished work, unfinished merges, header guards, line ends. And a
type that a header declares has a name of its own."""

import pathlib
import re

import lint_tree
from lint_tree import CODE_SUFFIXES, Finding, Sample

MOST_LINES = 600
MOST_COLUMNS = 120
LONG_REASON = re.compile(r"(//|#) Long because: \S")
# Written in two pieces so that this file keeps its own rule.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")
UNMERGED = re.compile(r"(<{7}|>{7}) ")
TEXT_SUFFIXES = CODE_SUFFIXES | {".py", ".cmake", ".in", ".txt", ".md", ".json", ".sh", ""}
# A type as the formatter leaves it: in the first column, with its body on the line or the next.
TYPE = re.compile(r"(?:template <.*> )?(?:class|struct|union|enum(?: class)?) "
                  r"(?:(?:ASHLAR_[A-Z]+|alignas\([^)]*\)|\[\[\w+\]\]) )*(\w+)(?: final)?(?: : [^;]*)?(?: \{.*)?$")
# Names that two types of the product have, and why.
SHARED_NAMES = {
    "Block": "a program's handle, and the record of the heap that it stands for",
    "Pool": "a program's handle, and the pool of the heap that it stands for",
    "Recorder": "a program's handle, and the recorder of the core that it stands for",
    "Error": "what a program catches, and CUDA's numbers in `hollow`, which throws nothing",
}
RECORDED_FOLDERS = ("docs/examples/", "tests/data/")  # recorded files are what they are


def is_ours(path):
    return not path.startswith(RECORDED_FOLDERS) and "/corpus/" not in path and "/data/" not in path


def has_width(path):
    """Tables of recorded truth in tests may be wide: a row there is one line."""
    return pathlib.PurePath(path).suffix in CODE_SUFFIXES and not path.startswith("tests/")


def guard_of(path):
    """Of the path as it is included: include/ashlar/x.h is "ashlar/x.h", include/ashlar.h is "ashlar.h"."""
    if path == "include/ashlar.h":
        return "ASHLAR_H_"
    included = path.removeprefix("include/ashlar/")
    return "ASHLAR_" + re.sub(r"[^A-Za-z0-9]", "_", included).upper() + "_"


def check_length(path, lines):
    if len(lines) <= MOST_LINES or any(LONG_REASON.search(text) for _, text in lines):
        return []
    return [Finding("length", path, len(lines), f"has {len(lines)} lines, over {MOST_LINES}: split it, or say why not "
                    "in a line 'Long because: ...'")]


def check_guard(path, lines):
    guard = guard_of(path)
    texts = [text for _, text in lines if text.strip()]
    directives = [text for text in texts if text.startswith("#")]
    if directives[:2] == [f"#ifndef {guard}", f"#define {guard}"] and texts[-1] == f"#endif  // {guard}":
        return []
    return [Finding("guard", path, 1, f"the header guard must be {guard}: #ifndef, #define, and last #endif  // {guard}")]


def check_lines(path, lines):
    findings = []
    for number, text in lines:
        if UNFINISHED.search(text):
            findings.append(Finding("unfinished", path, number, "finish it, or write what is missing into the docs"))
        if UNMERGED.match(text):
            findings.append(Finding("merge", path, number, "finish the merge"))
        if text != text.rstrip() and not path.endswith(".md"):
            findings.append(Finding("space", path, number, "remove the space at the end of the line"))
        if len(text) > MOST_COLUMNS and has_width(path):
            findings.append(Finding("width", path, number, f"{len(text)} columns, over {MOST_COLUMNS}: break the line"))
    return findings


def check_names(types):
    """`types` of the product: {name: [(path, line)]}. Types that sources have for themselves may share a name."""
    findings = []
    for name, places in sorted(types.items()):
        paths = {path for path, _ in places}
        if len(paths) == 1 or name in SHARED_NAMES or not any(path.endswith((".h", ".cuh")) for path in paths):
            continue
        path, line = places[-1]
        others = ", ".join(sorted(paths - {path}))
        findings.append(Finding("name", path, line, f"'{name}' is a type of {others} too: rename one, or write the reason "
                                "into SHARED_NAMES"))
    return findings


def check(root):
    findings = []
    types = {}
    for path in lint_tree.files(root, TEXT_SUFFIXES):
        if not is_ours(path):
            continue
        lines = lint_tree.lines(root, path)
        findings += check_lines(path, lines)
        if pathlib.PurePath(path).suffix in CODE_SUFFIXES | {".py"}:
            findings += check_length(path, lines)
        if path.endswith((".h", ".cuh")):
            findings += check_guard(path, lines)
        if path.startswith(tuple(f"{folder}/" for folder in lint_tree.PRODUCT_FOLDERS)):
            for number, text in lines:
                if match := TYPE.match(text):
                    types.setdefault(match[1], []).append((path, number))
    return findings + check_names(types)


HEADER = "// What it is.\n#ifndef ASHLAR_A_B_C_H_\n#define ASHLAR_A_B_C_H_\n\n#include <vector>\n\n#endif  // ASHLAR_A_B_C_H_\n"
GOOD = {
    "a/b_c.h": HEADER,
    "a/long.cc": "// Long because: one table.\n" + "int x;\n" * MOST_LINES,
    "a/just.cc": "int x;\n" * MOST_LINES,
    "a/data/recorded.txt": "space at the end \n",
    "tests/table_test.cc": "// " + "x" * MOST_COLUMNS + "\n",
}


def typed(text, path="kernels/b.h"):
    guard = guard_of(path)
    return f"#ifndef {guard}\n#define {guard}\n\n{text}\n\n#endif  // {guard}\n"


SAMPLES = [
    Sample("", GOOD),
    Sample("length", GOOD | {"a/long.cc": "int x;\n" * (MOST_LINES + 1)}),
    Sample("length", GOOD | {"a/long.cc": "// Long because: \n".rstrip() + "\n" + "int x;\n" * MOST_LINES}),
    Sample("unfinished", GOOD | {"a/x.cc": "// TO" "DO: later\n"}),
    Sample("unfinished", GOOD | {"docs/x.md": "FIX" "ME\n"}),
    Sample("merge", GOOD | {"docs/x.md": "<" * 7 + " HEAD\n"}),
    Sample("space", GOOD | {"a/x.cc": "int x; \n"}),
    Sample("width", GOOD | {"a/x.cc": "// " + "x" * MOST_COLUMNS + "\n"}),
    Sample("guard", GOOD | {"a/other.h": HEADER}),
    Sample("guard", GOOD | {"a/b_c.h": HEADER.replace("#define ASHLAR_A_B_C_H_\n", "")}),
    Sample("guard", GOOD | {"a/b_c.h": HEADER.replace("#endif  // ASHLAR_A_B_C_H_", "#endif")}),
    Sample("guard", GOOD | {"a/b_c.h": "#pragma once\n"}),
    Sample("name", GOOD | {"console/a.cc": "struct Same {\n",
                           "kernels/b.h": typed("class ASHLAR_EXPORT Same final : public Other {")}),
    Sample("name", GOOD | {"console/a.h": typed("enum class Same : int { kA };", "console/a.h"),
                           "kernels/b.h": typed("struct Same;\nstruct Same {")}),
    Sample("", GOOD | {"console/a.h": typed("struct Same;\nclass Same* Get();", "console/a.h"),
                       "kernels/b.h": typed("struct Same {")}),
    Sample("", GOOD | {"console/a.cc": "struct Same {\n", "kernels/b.cc": "struct Same {\n",
                       "tests/b.h": typed("struct Same {", "tests/b.h")}),
    Sample("", GOOD | {"include/ashlar/a/b_c.h": HEADER}),
    Sample("guard", GOOD | {"include/ashlar/b_c.h": HEADER}),
    Sample("", GOOD | {"include/ashlar.h": HEADER.replace("ASHLAR_A_B_C_H_", "ASHLAR_H_")}),
]

if __name__ == "__main__":
    lint_tree.main("sources", check, SAMPLES)
