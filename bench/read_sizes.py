#!/usr/bin/env python3
"""Time and memory of reading PyTorch snapshots of growing size, as rows of a table (docs/internals/performance.md).

  bench/read_sizes.py --build build/release --work /tmp/sizes --svg docs/internals/read.svg 100000 1000000 10000000

Inputs are made by bench/large_pickle.py, which takes longer than all else, and removed when measured. Each is read by
bench/read_time five times; the row has the fastest, by processor time, as other programs of the machine disturb it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

import sizes

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = 5
GOAL_MEGABYTES = 400  # a second
LINES = {"pickle": "read", "trace": "goal: 400 MB/s"}


def read(program, path):
    """(processor seconds, wall seconds, events, resident MiB) of one reading."""
    process = subprocess.Popen([program, path], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    shown = re.match(r"(\d+) events, .* in ([\d.]+) s", text)
    if process.returncode != 0 or not shown:
        sys.exit(f"read_sizes.py: {program} {path} ended with {process.returncode}: {text}")
    return usage.ru_utime + usage.ru_stime, float(shown[2]), int(shown[1]), usage.ru_maxrss / 1024


def measure(program, work, events):
    """A row of the table, and the points of the plot."""
    path = work / f"events_{events}.pickle"
    subprocess.run([sys.executable, HERE / "large_pickle.py", str(events), path], check=True)
    try:
        megabytes = path.stat().st_size / 1e6
        seconds, wall, count, resident = min(read(program, path) for _ in range(ROUNDS))
    finally:
        path.unlink()
    row = (f"| {count:,} | {megabytes:,.0f} MB | {seconds:.2f} s | {wall:.2f} s | {megabytes / seconds:.0f} MB/s | "
           f"{seconds / count * 1e9:.0f} ns | {resident:,.0f} MiB |")
    taken = {"pickle": seconds, "trace": megabytes / GOAL_MEGABYTES}
    return row, [{"size": count, "kind": kind, "command": "read", "processor": taken[kind]} for kind in LINES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--work", default="/tmp", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path, help="a plot")
    parser.add_argument("events", nargs="+", type=int)
    arguments = parser.parse_args()
    print("| events | file | processor | wall | by processor time | an event | resident |\n|---|---|---|---|---|---|---|")
    points = []
    for events in arguments.events:
        row, more = measure(arguments.build / "bench" / "read_time", arguments.work, events)
        points += more
        print(row, flush=True)
    if arguments.svg:
        arguments.svg.write_text(sizes.plot(points, "read", "reading a snapshot: processor seconds by events", LINES))


if __name__ == "__main__":
    main()
