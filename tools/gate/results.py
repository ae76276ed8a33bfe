#!/usr/bin/env python3
"""Prints what became of every single test of a ctest run, and counts them in the last line.

    results.py FOLDER    # of tools/test: entries.xml, by `ctest --output-junit`, and NAME.json, by a program of GoogleTest

A program of GoogleTest is one entry of ctest and many tests. One that fails beside its tests (it crashed, a sanitizer
found a leak at its end, its output lacks a line) is one failed test more, by the entry's name.
"""

import dataclasses
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

import proof


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    state: str  # passed, failed, skipped
    seconds: float


def cases_of(entry, path):
    """The outcomes of a program's cases; none where it wrote no file, or was killed while it wrote."""
    try:
        suites = json.loads(path.read_text(encoding="utf-8"))["testsuites"]
    except (OSError, ValueError, KeyError):
        return []
    return [Outcome(f"{entry}.{suite['name']}.{case['name']}", state_of_case(case), float(case["time"].rstrip("s")))
            for suite in suites for case in suite["testsuite"] if case["status"] == "RUN"]


def state_of_case(case):
    if case.get("failures"):
        return "failed"
    return "skipped" if case["result"] == "SKIPPED" else "passed"


def outcomes_of(folder):
    found = []
    for entry in ElementTree.parse(folder / "entries.xml").getroot().iter("testcase"):
        name, seconds = entry.get("name"), float(entry.get("time") or 0)
        state = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}.get(entry.get("status"), "failed")
        if state == "skipped" and entry.find("skipped") is None:
            state = "failed"  # not run and not skipped: its program is missing
        cases = cases_of(name, folder / f"{name}.json")
        is_told = any(case.state == "failed" for case in cases) if state == "failed" else bool(cases)
        found += cases if is_told else cases + [Outcome(name, state, seconds)]
    return found


def count(outcomes):
    states = [outcome.state for outcome in outcomes]
    return ", ".join(f"{states.count(state)} {state}" for state in ("passed", "failed", "skipped"))


def main(folder):
    outcomes = outcomes_of(folder)
    for outcome in outcomes:
        print(f"{outcome.state:7} {outcome.seconds:8.3f} s  {outcome.name}")
    for outcome in outcomes:
        if outcome.state == "failed":
            print(f"failed: {outcome.name}")
    print(count(outcomes))
    return 1 if not outcomes or any(outcome.state == "failed" for outcome in outcomes) else 0


ENTRIES = """<testsuite>
<testcase name="good" time="1.5" status="run"/>
<testcase name="mixed" time="1" status="fail"><failure message=""/></testcase>
<testcase name="leaks" time="1" status="fail"><failure message=""/></testcase>
<testcase name="crashed" time="1" status="fail"><failure message=""/></testcase>
<testcase name="python" time="2" status="run"/>
<testcase name="absent" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase name="lost" time="0" status="notrun"/>
</testsuite>"""


def made(*cases):
    """The file of a program with these cases: (name, result, has it failed)."""
    rows = [{"name": name, "status": "RUN", "result": result, "time": "0.5s"} | ({"failures": [{}]} if failed else {})
            for name, result, failed in cases]
    return json.dumps({"testsuites": [{"name": "S", "testsuite": rows + [{"name": "Off", "status": "NOTRUN"}]}]})


def prove():
    """What a run of every kind is told as."""
    folder = proof.folder({"entries.xml": ENTRIES, "good.json": made(("A", "COMPLETED", False), ("B", "SKIPPED", False)),
                           "mixed.json": made(("A", "COMPLETED", True), ("B", "COMPLETED", False)),
                           "leaks.json": made(("A", "COMPLETED", False)), "crashed.json": '{"testsuites": ['})
    told = {outcome.name: outcome.state for outcome in outcomes_of(folder)}
    proof.same("outcomes", told, {
        "good.S.A": "passed", "good.S.B": "skipped", "mixed.S.A": "failed", "mixed.S.B": "passed", "leaks.S.A": "passed",
        "leaks": "failed", "crashed": "failed", "python": "passed", "absent": "skipped", "lost": "failed"})


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        prove()
        sys.exit(0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    prove()
    sys.exit(main(pathlib.Path(sys.argv[1])))
