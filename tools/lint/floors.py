#!/usr/bin/env python3
"""Holds every #include of ours to the floors of docs/internals/floors.md."""

import dataclasses
import pathlib
import re

import lint_tree
from lint_tree import Finding, Sample

FLOORS_FILE = "docs/internals/floors.md"
EVERYTHING = "*"  # as the only arrow: every folder listed above
PUBLIC = "include"  # the root of what is installed: "ashlar/x.h" is include/ashlar/x.h
FLOOR_LINE = re.compile(r"^F(\d+)\s+(\S+)\s+<-\s*(.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')


@dataclasses.dataclass
class Floor:
    number: int
    line: int
    arrows: set  # the folders that it may include, itself left out
    used: set = dataclasses.field(default_factory=set)  # those that it does include


def read_floors(root):
    """(folder -> Floor, findings) from the block ```floors of docs/internals/floors.md."""
    floors, findings, inside = {}, [], False
    if not (pathlib.Path(root) / FLOORS_FILE).is_file():
        return {}, [Finding("table", FLOORS_FILE, 1, "is missing: it holds the floors")]
    for number, text in lint_tree.lines(root, FLOORS_FILE):
        if text.startswith("```"):
            inside = text == "```floors"
        elif inside and text.strip():
            findings += add_floor(floors, number, text)
    if not floors and not findings:
        findings.append(Finding("table", FLOORS_FILE, 1, "has no block ```floors with a line for each folder"))
    return floors, findings


def add_floor(floors, line, text):
    match = FLOOR_LINE.match(text)
    if not match:
        return [Finding("table", FLOORS_FILE, line, f"'{text}' is not 'F<number> folder <- folders'")]
    number, folder, arrows = int(match[1]), match[2], match[3].split()
    if folder in floors:
        return [Finding("table", FLOORS_FILE, line, f"{folder} is listed twice: keep one line")]
    if arrows == [EVERYTHING]:
        floors[folder] = Floor(number, line, set(floors))
        floors[folder].used = set(floors)
        return []
    findings = []
    for arrow in arrows:
        if arrow not in floors or floors[arrow].number > number:
            findings.append(Finding("arrow", FLOORS_FILE, line,
                                    f"{folder} <- {arrow}: an arrow names a folder listed above it, on no higher floor"))
    floors[folder] = Floor(number, line, {arrow for arrow in arrows if arrow in floors})
    return findings


def folder_of(floors, path):
    """The listed folder that `path` lies in; None where there is none."""
    for parent in pathlib.PurePath(path).parents:
        if str(parent) in floors:
            return str(parent)
    return None


def check_include(root, floors, tops, path, line, target):
    beside = pathlib.Path(root) / pathlib.PurePath(path).parent / target
    if (pathlib.Path(root) / PUBLIC / target).is_file():
        target = f"{PUBLIC}/{target}"
    if target.split("/")[0] not in tops:
        if target.startswith(".") or beside.is_file():
            return [Finding("relative", path, line, f"include \"{target}\" by its path from the repository root")]
        return []
    if not (pathlib.Path(root) / target).is_file():
        return [Finding("missing", path, line, f"there is no file {target}: mend the path")]
    own, other = folder_of(floors, path), folder_of(floors, target)
    if own is None or other is None or own == other:
        return []  # a folder without a floor has its own finding
    floors[own].used.add(other)
    if other in floors[own].arrows:
        return []
    direction = {True: "upward", False: "sideways"}[floors[other].number > floors[own].number]
    if floors[other].number < floors[own].number:
        direction = "past its arrows"
    return [Finding("floor", path, line,
                    f"{own} (F{floors[own].number}) includes {direction}, {target} of {other} "
                    f"(F{floors[other].number}): pass the value in, move the type down, or change {FLOORS_FILE}")]


def check(root):
    floors, findings = read_floors(root)
    tops = {folder.split("/")[0] for folder in floors}
    for path in lint_tree.files(root, lint_tree.CODE_SUFFIXES):
        if folder_of(floors, path) is None:
            findings.append(Finding("folder", path, 1,
                                    f"the folder has no floor: add a line for it to {FLOORS_FILE}"))
        for line, text in lint_tree.lines(root, path):
            match = INCLUDE.match(text)
            if match:
                findings += check_include(root, floors, tops, path, line, match[1])
    for folder, floor in floors.items():
        for arrow in sorted(floor.arrows - floor.used):
            findings.append(Finding("loose", FLOORS_FILE, floor.line,
                                    f"{folder} <- {arrow}: nothing in {folder} includes {arrow}: take the arrow out"))
    return findings


TABLE = """```floors
F0 a/base <-
F1 a/left <- a/base
F1 a/right <- a/base
F2 a/roof <- a/base a/left
F3 b <- a/left a/roof
F4 c <- *
```
"""
GOOD = {
    FLOORS_FILE: TABLE,
    "a/base/x.h": "#include <vector>\n#include \"absl/strings/str_cat.h\"\n",
    "a/left/x.h": "#include \"a/base/x.h\"\n",
    "a/right/x.h": "#include \"a/base/x.h\"\n",
    "a/roof/x.h": "#include \"a/base/x.h\"\n#include \"a/left/x.h\"\n#include \"a/roof/deep/x.h\"\n",
    "a/roof/deep/x.h": "",
    "b/x.cc": "#include \"a/roof/deep/x.h\"\n#include <a/left/x.h>\n",
    "c/x.cc": "#include \"a/right/x.h\"\n",
}
WITH_PUBLIC = {
    FLOORS_FILE: TABLE.replace("F3 b <-", "F2 include/ashlar <-\nF3 b <- include/ashlar"),
    "include/ashlar/x.h": "#include \"ashlar/y.h\"\n",
    "include/ashlar/y.h": "",
    "b/z.cc": "#include \"ashlar/x.h\"\n#include <ashlar/y.h>\n",
}
SAMPLES = [
    Sample("", GOOD),
    Sample("floor", GOOD | {"a/base/up.h": "#include \"a/left/x.h\"\n"}),
    Sample("floor", GOOD | {"a/base/up.h": "#  include <a/left/x.h>\n"}),
    Sample("floor", GOOD | {"a/left/side.h": "#include \"a/right/x.h\"\n"}),
    Sample("floor", GOOD | {"a/roof/past.h": "#include \"a/right/x.h\"\n"}),
    Sample("floor", GOOD | {"a/left/deep/up.cc": "#include \"a/roof/x.h\"\n"}),
    Sample("floor", GOOD | {"b/far.cc": "#include \"a/base/x.h\"\n"}),
    Sample("loose", GOOD | {"a/right/x.h": ""}),
    Sample("folder", GOOD | {"d/x.cc": ""}),
    Sample("folder", GOOD | {"a/x.cc": ""}),
    Sample("", GOOD | WITH_PUBLIC),
    Sample("floor", GOOD | WITH_PUBLIC | {"a/base/up.h": "#include \"ashlar/x.h\"\n"}),
    Sample("floor", GOOD | WITH_PUBLIC | {"include/ashlar/up.h": "#include \"a/roof/deep/x.h\"\n"}),
    Sample("missing", GOOD | {"b/y.cc": "#include \"a/base/gone.h\"\n"}),
    Sample("relative", GOOD | {"b/x.h": "", "b/y.cc": "#include \"x.h\"\n"}),
    Sample("relative", GOOD | {"b/y.cc": "#include \"../a/base/x.h\"\n"}),
    Sample("arrow", GOOD | {FLOORS_FILE: TABLE.replace("F0 a/base <-", "F0 a/base <- b")}),
    Sample("arrow", GOOD | {FLOORS_FILE: TABLE.replace("F3 b", "F0 b")}),
    Sample("table", GOOD | {FLOORS_FILE: TABLE.replace("F4 c <-", "F4 d includes\nF4 c <-")}),
    Sample("table", GOOD | {FLOORS_FILE: TABLE.replace("F3 b", "F3 b <- a/left a/roof\nF3 b")}),
    Sample("table", {FLOORS_FILE: "no block\n"}),
    Sample("table", {}),
]

if __name__ == "__main__":
    lint_tree.main("floors", check, SAMPLES)
