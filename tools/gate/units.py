#!/usr/bin/env python3
"""Names the translation units of a configured build that a check goes over, one a line.

    units.py build/tidy                      # all of our own
    units.py build/tidy --changed            # those with a changed source; for a changed header one that includes it
    units.py build/syntax --changed --all-that-include    # every one that includes something changed

The change is that of selection.py. Where it cannot be told all units are named, and so where one of --judge FILE changed.
"""

import argparse
import json
import pathlib
import re
import sys

import folder_graph
import selection
from tree import ROOT

INCLUDED = re.compile(r'^#include "(/[^"]+)"', re.MULTILINE)


def units_of(tree, root=ROOT):
    """{unit: its sources, relative to root}: a unit of many is a file that includes them."""
    found = {}
    for row in json.loads((tree / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(row["file"])
        if path.suffix not in (".cc", ".cxx", ".cpp") or path.name.startswith("cmake_pch"):
            continue
        inside = [path] if path.is_relative_to(root) and not path.is_relative_to(tree) else \
            map(pathlib.Path, INCLUDED.findall(path.read_text(encoding="utf-8")))
        sources = [str(source.relative_to(root)) for source in inside if source.is_relative_to(root)]
        sources = [source for source in sources if source.split("/")[0] in folder_graph.lint_tree.PRODUCT_FOLDERS]
        if sources:
            found[str(path)] = sources
    return found


def touched(units, changed, all_that_include, root=ROOT):
    """The units that the changed files ask for."""
    includes, picked = folder_graph.Includes(root), []
    seen = {unit: set().union(*map(includes.of, sources)) for unit, sources in units.items()}
    for path in changed:
        having = [unit for unit, sources in units.items() if path in sources]
        of_same_name = [unit for unit, sources in units.items() if str(pathlib.Path(path).with_suffix(".cc")) in sources]
        seeing = [unit for unit in units if path in seen[unit]]
        picked += seeing if all_that_include else having or of_same_name or seeing[:1]
    return sorted(set(picked))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--all-that-include", action="store_true")
    parser.add_argument("--judge", action="append", default=[], metavar="FILE")
    flags = parser.parse_args()
    units = units_of(flags.tree.resolve())
    if not units:
        sys.exit(f"units.py: {flags.tree} has no units of ours: configure it")
    change = selection.change_of(ROOT) if flags.changed else selection.Change(None, "")
    whole = change.files is None or any(folder_graph.is_below(path, name) for path in change.files for name in flags.judge)
    print("\n".join(sorted(units) if whole else touched(units, change.files, flags.all_that_include)))


if __name__ == "__main__":
    main()
