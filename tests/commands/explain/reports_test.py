"""Judges what `ashlar explain` answers, by the exact JSON keys and literal words that a table has for each case: of public
reports, each case of expected.json (found in the shared data) by reports.json, and of the texts of wordings.json itself.

    reports_test.py ASHLAR reports.json [CASES]     # CASES: the folder with expected.json and the inputs
    reports_test.py ASHLAR wordings.json            # the lines of each case stand there; "nothing": no failure is in them

A printed size such as "14.81 GiB" holds where the bytes lie within half a unit of its last digit; a number holds exactly.
Exit code 77 where the shared data is missing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def shared_dir():
    named = os.environ.get("ASHLAR_SHARED_DIR")
    return pathlib.Path(named) if named else pathlib.Path(__file__).resolve().parents[3] / ".." / "shared"


def looked_up(answer, key):
    """"message.figures.weights" of an answer; a figure by its name."""
    value = answer
    for part in key.split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, list):
            value = next((one.get("bytes", one) for one in value if one.get("name") == part), None)
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def holds(value, wanted):
    size = re.fullmatch(r"(-?\d+)(?:\.(\d+))? (%s)" % "|".join(UNITS), wanted) if isinstance(wanted, str) else None
    if size is None:
        return value == wanted and type(value) is type(wanted)
    if not isinstance(value, int):
        return False
    unit = UNITS[size.group(3)]
    half = unit / 10 ** len(size.group(2) or "") / 2 if unit > 1 else 0
    return abs(value - float(wanted.split()[0]) * unit) <= half + 1


def words_of(text):
    return " ".join(text.split())


def faults_of(ashlar, path, wanted, forbidden):
    def run(*flags):
        return subprocess.run([ashlar, "explain", *flags, str(path)], capture_output=True, text=True, timeout=60)

    as_json, as_text = run("--json"), run()
    if wanted.get("nothing"):
        return [] if as_json.returncode != 0 else ["read, and nothing failed there"]
    if as_json.returncode != 0:
        return ["not read: " + words_of(as_json.stderr)[:160]]
    answers = json.loads(as_json.stdout)
    answers = answers if isinstance(answers, list) else [answers]
    faults = []
    if len(answers) != wanted.get("messages", 1):
        faults.append(f"{len(answers)} messages, not {wanted.get('messages', 1)}")
    lists = wanted["answers"] if "answers" in wanted else [wanted.get("keys", {})]
    for answer, keys in zip(answers, lists):
        for key, value in keys.items():
            if not holds(looked_up(answer, key), value):
                faults.append(f"{key} is {looked_up(answer, key)!r}, not {value!r}")
    text = words_of(as_text.stdout)
    faults += [f"does not say {words!r}" for words in wanted.get("say", []) if words not in text]
    faults += [f"says {words!r}" for words in [*wanted.get("not_say", []), *forbidden] if words in text]
    absent = wanted.get("cause_absent")
    if any(cause["name"] == absent and cause["finding"] == "found" for cause in answers[0]["causes"]):
        faults.append(f"names the cause {absent}")
    return faults


def proven():
    """That the judge can find a fault at all."""
    assert holds(15902178345, "14.81 GiB") and not holds(15902178345, "14.82 GiB")
    assert holds(5, 5) and not holds(None, 5) and not holds(True, 1) and holds(None, None)
    assert looked_up({"a": [{"name": "x", "bytes": 3}]}, "a.x") == 3


def judge_texts(ashlar, table):
    """How many are as expected."""
    good = 0
    with tempfile.TemporaryDirectory() as place:
        for name, wanted in table.items():
            path = pathlib.Path(place) / (name + ".txt")
            path.write_text("\n".join(wanted["text"]) + "\n", encoding="utf-8")
            faults = faults_of(ashlar, path, wanted, [])
            good += not faults
            for fault in faults:
                print(f"{name}: {fault}")
    print(f"{good} of {len(table)} as expected")
    return good


def main():
    proven()
    ashlar, table = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    if all("text" in wanted for wanted in table.values()):
        return 0 if judge_texts(ashlar, table) == len(table) else 1
    folder = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else shared_dir() / "reports"
    if not (folder / "expected.json").is_file():
        print("no shared test data: set ASHLAR_SHARED_DIR, or put it at ../shared")
        return SKIPPED
    cases = json.loads((folder / "expected.json").read_text())
    good, judged, elsewhere = 0, 0, []
    missing = sorted(set(cases) - set(table))
    for name in sorted(set(cases) & set(table)):
        wanted = table[name]
        if "elsewhere" in wanted:
            elsewhere.append(f"{name}: {wanted['elsewhere']}")
            continue
        judged += 1
        faults = faults_of(ashlar, folder / cases[name]["file"], wanted, cases[name].get("must_not_say", []))
        good += not faults
        for fault in faults:
            print(f"{name}: {fault}")
    for name in missing:
        print(f"{name}: no entry in {sys.argv[2]}")
    for line in elsewhere:
        print("judged elsewhere:", line)
    print(f"{good} of {judged} as expected")
    return 0 if good == judged and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
