#!/usr/bin/env python3
"""Time and memory of reading PyTorch snapshots of growing size, as rows of a table (docs/internals/performance.md).

  bench/read_sizes.py --build build/release --work /tmp/sizes 100000 1000000 10000000

Inputs are made by bench/large_pickle.py, which takes longer than all else, and removed when measured. Each is read by
bench/read_time five times; the row has the fastest, by processor time, as other programs of the machine disturb it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROUNDS = 5


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


def row(program, work, events):
    path = work / f"events_{events}.pickle"
    subprocess.run([sys.executable, HERE / "large_pickle.py", str(events), path], check=True)
    try:
        megabytes = path.stat().st_size / 1e6
        seconds, wall, count, resident = min(read(program, path) for _ in range(ROUNDS))
    finally:
        path.unlink()
    return (f"| {count:,} | {megabytes:,.0f} MB | {seconds:.2f} s | {wall:.2f} s | {megabytes / seconds:.0f} MB/s | "
            f"{seconds / count * 1e9:.0f} ns | {resident:,.0f} MiB |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", type=pathlib.Path)
    parser.add_argument("--work", default="/tmp", type=pathlib.Path)
    parser.add_argument("events", nargs="+", type=int)
    arguments = parser.parse_args()
    print("| events | file | processor | wall | by processor time | an event | resident |\n|---|---|---|---|---|---|---|")
    for events in arguments.events:
        print(row(arguments.build / "bench" / "read_time", arguments.work, events), flush=True)


if __name__ == "__main__":
    main()
