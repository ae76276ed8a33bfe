#!/usr/bin/env python3
"""Holds the hollow device to what an H200 answered to tests/gpu/cuda_questions.py (docs/measurements/h200_questions.json).

    questions_test.py ASHLAR     # the program

Where it answers otherwise, the whole of its own answer is written here with the reason, so that every change of it is seen.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HUGE = 1 << 38, 1 << 45  # managed memory beyond the device's: an H200 takes it, and has it on the host


def otherwise(answers):
    """{question: (the hollow device's own answer, why)}, from the H200's."""
    entries = json.loads(json.dumps(answers["entry_points"]))
    for name, changed in (("cuMemCreate", [0, 0, True]), ("cuMemAlloc_v2", [0, 0, True])):
        row = next(row for row in entries if row[0] == name)
        row[:] = [name, *changed]
        at = entries.index(row)
        entries[at + 1 : at + 4] = [[0, False], [0, False], [0, 0, False]]
    memory = list(answers["virtual_memory"])
    memory[-5] = 2
    too_much = [[row[0], row[1], row[2], 2, row[4]] if row[0] in HUGE else list(row) for row in answers["too_much"]]
    too_much[-2][-1] = 2
    frees = list(answers["wrong_frees"])
    frees[frees.index("twice") + 1] = 1
    graph = [0, ["captured", 67108864, [41943040, 41943040, 67108864, 67108864]]]
    for word in ("instantiated", "uploaded", "launched", "exec destroyed"):
        graph += [0, [word, 67108864, [41943040, 41943040, 67108864, 67108864]]]
    graph += [0, ["graph destroyed", 0, [0, 41943040, 0, 67108864]], 0, ["trimmed", 0, [0, 41943040, 0, 67108864]]]
    limits = [list(row) for row in answers["limits"]]
    limits[2][1], limits[4][1:4] = 1048576, [2, 0, 4]
    return {
        "entry_points": (entries, "a function is found whatever version of CUDA is asked for, and by its exported name"),
        "virtual_memory": (memory, "2^46 bytes of addresses are more than the reservation of the process has"),
        "too_much": (too_much, "managed memory is charged to the device; 2^80 bytes of rows are out of memory"),
        "wrong_frees": (frees, "cudaFreeAsync frees at once"),
        "graph_memory": (graph, "memory of a captured graph is taken at its capture and goes with the graph"),
        "without_context": (["init", 0, 0, 0, 0, False, 0, 0, 0, 0, 0, 0, 0, 0], "each thread has a context from the start"),
        "limits": (limits, "the documented defaults of CUDA"),
    }


def main():
    done = subprocess.run([sys.argv[1], "dry-run", "--device", "H200", "--", sys.executable, "-B",
                           str(ROOT / "tests/gpu/cuda_questions.py")], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "CUDART": ""})
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"questions_test.py: the dry run ended with {done.returncode}:\n{done.stderr[-2000:]}")
    ours = json.loads(done.stdout.splitlines()[0])
    answers = json.loads((ROOT / "docs/measurements/h200_questions.json").read_text(encoding="utf-8"))
    different, failed = otherwise(answers), 0
    for name, answer in answers.items():
        wanted = different[name][0] if name in different else answer
        if ours.get(name) != wanted:
            failed += 1
            print(f"{name}:\n  wanted {json.dumps(wanted)}\n  has    {json.dumps(ours.get(name))}")
        elif name in different and wanted == answer:
            failed += 1
            print(f"{name}: the same as the H200's: take it out of the list")
    print(f"{len(answers) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
