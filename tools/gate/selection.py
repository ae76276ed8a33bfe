#!/usr/bin/env python3
"""Says which tests a change can break: those of the folders that it touches, and of all that stand on them.

    selection.py --build build/release              # for tools/test --changed: two lines, names and targets
    selection.py --explain --build build/release    # for a reader: what changed, what is selected, and why
    selection.py --parts                            # the deep parts of the gate that the change asks for by itself
    selection.py --scope                            # "change"; "everything", for a change of the build; "unknown"
    selection.py --history 50 --build build/release # what each of the last 50 commits would have selected

The change is all that differs from the base: the commit CI_BASE, else where this branch left origin's main branch. Where no
base can be told everything is selected, and so where the build system, the floors or the gate changed. What stands on
what is read from docs/internals/floors.md.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import folder_graph
from tree import ROOT

BRANCHES = ("origin/HEAD", "origin/main", "origin/master")


@dataclasses.dataclass(frozen=True)
class Change:
    files: list  # None: everything
    why: str  # what it is held to, or why it is everything


@dataclasses.dataclass(frozen=True)
class Entry:
    """A test of ctest."""
    name: str
    folder: str  # of the CMakeLists.txt, or the file beside it, that adds it
    command: list


@dataclasses.dataclass(frozen=True)
class Selection:
    nodes: set  # None: everything
    why: str


def git(root, *arguments):
    """What git prints; None where it fails."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def paths(text):
    return [path for path in (text or "").split("\0") if path]


def change_of(root, environment=os.environ):
    """What differs from the base, uncommitted files among it."""
    named = environment.get("CI_BASE", "")
    head = git(root, "rev-parse", "HEAD")
    if head is None:
        return Change(None, "this is no git checkout")
    if named:
        base = git(root, "merge-base", named, "HEAD")
        if base is None:
            return Change(None, f"CI_BASE={named} is no commit that this checkout has")
    else:
        branch = next((name for name in BRANCHES if git(root, "rev-parse", "--verify", "-q", name)), None)
        base = git(root, "merge-base", branch, "HEAD") if branch else None
        if base is None:
            return Change(None, "there is no branch of origin to compare with: set CI_BASE")
    files = changed_files(root, base)
    if base == head and not files:
        return Change(None, f"nothing differs from {named or branch}: it has landed, and what it was before cannot be told")
    return Change(files, f"compared with {base[:10]}")


def changed_files(root, base, until=None):
    """Renamed files by both names."""
    found = paths(git(root, "diff", "--name-only", "--no-renames", "-z", base, *([until] if until else [])))
    return sorted(set(found if until else found + paths(git(root, "ls-files", "-o", "--exclude-standard", "-z"))))


def select(graph, files):
    """The nodes that the files can change."""
    touched = set()
    for path in files:
        if any(folder_graph.is_below(path, name) for name in graph.unseen):
            continue
        if any(folder_graph.is_below(path, name) for name in graph.whole):
            return Selection(None, f"{path} changed")
        nodes = graph.nodes_of(path)
        if not nodes:
            return Selection(None, f"{path} changed, of which {folder_graph.floors.FLOORS_FILE} says nothing")
        touched |= nodes
    return Selection(graph.above(touched), " ".join(sorted(touched)) or "nothing that a test reads")


def parts_of(graph, files):
    return [part for part, targets in graph.parts.items()
            if any(folder_graph.is_below(path, target) for path in files for target in targets)]


def entries_of(build, root=ROOT):
    """The tests of a configured build."""
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"selection.py: ctest --show-only of {build} failed: {shown.stderr.strip()}")
    answer = json.loads(shown.stdout)
    graph = answer["backtraceGraph"]
    found = []
    for test in answer["tests"]:
        places = []
        node = test["backtrace"]
        while node is not None:
            places.append(os.path.relpath(graph["files"][graph["nodes"][node]["file"]], root))
            node = graph["nodes"][node].get("parent")
        found.append(Entry(test["name"], folder_of(places), test.get("command", [])))
    return found


def folder_of(places):
    """The folder of the innermost file that is not the one with the functions: tests/CMakeLists.txt adds none itself."""
    own = [os.path.dirname(place) for place in places if place != "tests/CMakeLists.txt"]
    return own[0] if own else "tests"


def chosen(graph, selection, entries):
    if selection.nodes is None:
        return entries
    return [entry for entry in entries if entry.folder in selection.nodes or not graph.nodes_of(entry.folder + "/CMakeLists.txt")]


def targets_of(build, entries):
    """The files of the build that the tests' commands name, as ninja calls them: their programs, and what those are given."""
    found = set()
    for entry in entries:
        for argument in entry.command:
            path = os.path.relpath(argument, build) if os.path.isabs(argument) else ""
            if path and not path.startswith("..") and not path.startswith("results/"):
                found.add(path)
    known = {line.split(":")[0] for line in subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"],
                                                           capture_output=True, text=True).stdout.splitlines()}
    return sorted(found & known)


def explain(graph, change, selection, entries, picked):
    print(f"changed: {'everything' if change.files is None else f'{len(change.files)} files'}, {change.why}")
    for path in (change.files or [])[:20]:
        print(f"  {path}")
    if selection.nodes is None:
        print(f"selected: everything, {len(entries)} tests: {selection.why}")
        return
    print(f"touched: {selection.why}")
    source_folders = sorted(node for node in selection.nodes if node in graph.source_folders and not node.startswith("tests"))
    print(f"stand on it: {' '.join(source_folders) or 'none'}")
    print(f"selected: {len(picked)} of {len(entries)} tests: {' '.join(entry.name for entry in picked)}")


def seconds_of(build):
    """Of each test, by the last run of all; empty where there was none."""
    path = pathlib.Path(build) / "results/entries.xml"
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    return {name: float(seconds) for name, seconds in re.findall(r'<testcase name="([^"]+)"[^>]*? time="([\d.e+-]+)"', text)}


def history(graph, root, build, count):
    """A row for each commit, by the floors of today; then the middle and the worst."""
    entries, seconds, rows = entries_of(build), seconds_of(build), []
    for commit in git(root, "rev-list", "--first-parent", f"--max-count={count}", "HEAD").split():
        selection = select(graph, changed_files(root, commit + "^", commit))
        picked = chosen(graph, selection, entries)
        rows.append((len(picked), sum(seconds.get(entry.name, 0) for entry in picked), selection.nodes is None))
        print(f"{commit[:10]} {len(picked):4} tests {rows[-1][1]:7.1f} s  {selection.why[:90]}")
    print(f"of {len(entries)} tests, {sum(seconds.values()):.1f} s: median {statistics.median(row[0] for row in rows):g} tests, "
          f"{statistics.median(row[1] for row in rows):.1f} s; worst {max(row[0] for row in rows)} tests, "
          f"{max(row[1] for row in rows):.1f} s; everything in {sum(row[2] for row in rows)} of {len(rows)} commits")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="a configured build")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--scope", action="store_true")
    parser.add_argument("--history", type=int, metavar="COMMITS")
    flags = parser.parse_args()
    try:
        graph = folder_graph.read_graph(ROOT)
    except folder_graph.GraphError as error:
        sys.exit(f"selection.py: {error}")
    if flags.history:
        history(graph, ROOT, flags.build, flags.history)
        return
    change = change_of(ROOT)
    if flags.parts:
        print(" ".join(parts_of(graph, change.files or [])))
        return
    selection = Selection(None, change.why) if change.files is None else select(graph, change.files)
    if flags.scope:
        print("unknown" if change.files is None else "everything" if selection.nodes is None else "change")
        return
    entries = entries_of(flags.build.resolve())
    picked = chosen(graph, selection, entries)
    if flags.explain:
        explain(graph, change, selection, entries, picked)
    elif selection.nodes is None:
        print("everything")
    else:
        print("|".join(re.escape(entry.name) for entry in picked))
        print(" ".join(targets_of(flags.build.resolve(), picked)))


if __name__ == "__main__":
    main()
