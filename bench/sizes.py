#!/usr/bin/env python3
"""Time and memory of commands over traces of growing size, as a table and a plot (docs/internals/performance.md).

  bench/sizes.py --build build/release --work /tmp/sizes --svg docs/internals/sizes.svg 100000 1000000 10000000

Inputs are made by bench/large_trace and removed when measured. Seconds are wall seconds, memory is the most that was
resident. A command that fails ends the script.
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys
import time

KINDS = {"trace": "request trace", "rmm": "RMM log", "ashlar": "recording", "pickle": "PyTorch snapshot"}
COMMANDS = {"explain": ["explain", "{}"], "replay": ["replay", "{}"], "diff": ["diff", "{}", "{}"]}
COLOURS = {"trace": "#2a78d6", "rmm": "#8a5fb5", "ashlar": "#d9822b", "pickle": "#3a9a5f"}


def measure(command):
    """Wall seconds, processor seconds and resident MiB of a command that must succeed."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"sizes.py: {' '.join(command)} ended with {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rows(build, work, sizes, kinds, commands):
    for size in sizes:
        for kind in kinds:
            path = work / f"train.{kind}"
            subprocess.run([build / "bench/large_trace", str(size), path], check=True)
            stored = path.stat().st_size / 2**20
            for name in commands:
                command = [str(build / "bin/ashlar")] + [part.format(path) for part in COMMANDS[name]]
                seconds, processor, resident = measure(command)
                yield {"size": size, "kind": kind, "command": name, "stored": stored, "seconds": seconds,
                       "processor": processor, "resident": resident}
            path.unlink()


def table(measured):
    lines = ["| requests | input | MiB stored | command | seconds | processor seconds | MiB resident |",
             "|---|---|---|---|---|---|---|"]
    for row in measured:
        lines.append(f"| {row['size']:,} | {KINDS[row['kind']]} | {row['stored']:,.0f} | `{row['command']}` | "
                     f"{row['seconds']:.1f} | {row['processor']:.1f} | {row['resident']:,.0f} |")
    return "\n".join(lines)


def plot(measured, command, title, names=KINDS):
    """Both axes logarithmic: a line of slope 1 is linear growth."""
    points = [row for row in measured if row["command"] == command]
    low_x, high_x = (f(math.log10(row["size"]) for row in points) for f in (min, max))
    low_y = math.floor(min(math.log10(row["processor"]) for row in points))
    high_y = math.ceil(max(math.log10(row["processor"]) for row in points))
    width, height, left, bottom = 640, 400, 70, 50
    x = lambda v: left + (math.log10(v) - low_x) / max(high_x - low_x, 1e-9) * (width - left - 150)
    y = lambda v: height - bottom - (math.log10(v) - low_y) / max(high_y - low_y, 1e-9) * (height - bottom - 30)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           'font-size="12"><rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18">{title}</text>']
    for power in range(low_y, high_y + 1):
        at = y(10**power)
        out.append(f'<line x1="{left}" x2="{width - 150}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} s</text>')
    for size in sorted({row["size"] for row in points}):
        out.append(f'<line x1="{x(size):.1f}" x2="{x(size):.1f}" y1="30" y2="{height - bottom}" stroke="#ddd"/>'
                   f'<text x="{x(size):.1f}" y="{height - bottom + 18}" text-anchor="middle">{size:,}</text>')
    for number, (kind, name) in enumerate(names.items()):
        line = sorted((row["size"], row["processor"]) for row in points if row["kind"] == kind)
        if not line:
            continue
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[kind]}" stroke-width="2"/>')
        out += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{COLOURS[kind]}"/>' for a, b in line]
        out.append(f'<text x="{width - 140}" y="{50 + 18 * number}" fill="{COLOURS[kind]}">{name}</text>')
    first = min(points, key=lambda row: (row["size"], row["processor"]))
    ends = [(size, first["processor"] * size / first["size"]) for size in (10**low_x, 10**high_x)]
    out.append(f'<line x1="{x(ends[0][0]):.1f}" y1="{y(ends[0][1]):.1f}" x2="{x(ends[1][0]):.1f}" '
               f'y2="{y(ends[1][1]):.1f}" stroke="#888" stroke-dasharray="4 4"/>'
               f'<text x="{width - 140}" y="{50 + 18 * len(names)}" fill="#888">linear</text></svg>')
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a release build with its benchmarks")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where inputs are made")
    parser.add_argument("--svg", type=pathlib.Path, help="the plot of the first command")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--commands", default="explain,diff")
    parser.add_argument("sizes", type=int, nargs="+", help="requests of a trace")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    commands = options.commands.split(",")
    measured = []
    for row in rows(options.build, options.work, options.sizes, options.kinds.split(","), commands):
        measured.append(row)
        print(table([row]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(measured))
    if options.svg:
        options.svg.write_text(plot(measured, commands[0], f"ashlar {commands[0]}: processor seconds by requests"))


if __name__ == "__main__":
    main()
