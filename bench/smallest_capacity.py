#!/usr/bin/env python3
"""The smallest device on which the requests of each trace are all served, by settings.

    bench/smallest_capacity.py build/release/bin/ashlar TRACE... [--confs "default;expandable_segments:True;policy:ashlar"]

A trace is what `ashlar replay` reads. Each replay starts empty. The capacity is found by halving, to a page of 2 MiB, and
checked: all requests are served there, and not with a page less. Prints a Markdown table: the peak of what is allocated,
and for each setting the capacity as a multiple of that peak, the peak that is reserved where memory is ample (80 GiB),
and what the device's calls cost there and at the smallest capacity, by the model of `ashlar replay`. --waits adds how
often a stream waits for another one there (borrow_across_streams). --best adds the least capacity under any of other
settings. --shares adds what the device's calls cost as a share of the time from the first event to the last, there and at
the smallest capacity, of snapshots that say it (taken on a GPU: without one the time is not a run's).
"""

import argparse
import gzip
import json
import os
import pathlib
import pickle
import subprocess
import sys

PAGE = 2 << 20
AMPLE = 80 << 30


def replay(ashlar, trace, conf, capacity):
    command = [ashlar, "replay", trace, "--cold", "--json", "--capacity", str(capacity), "--conf", conf]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"smallest_capacity: {trace}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def fits(ashlar, trace, conf, pages):
    return replay(ashlar, trace, conf, pages * PAGE)["ooms"] == 0


def smallest(ashlar, trace, conf, ample):
    low, high = ample["peak_active"] // PAGE, ample["peak_reserved"] // PAGE + 1
    while low < high:
        middle = (low + high) // 2
        if fits(ashlar, trace, conf, middle):
            high = middle
        else:
            low = middle + 1
    if not fits(ashlar, trace, conf, low) or fits(ashlar, trace, conf, low - 1):
        sys.exit(f"smallest_capacity: {trace}: {conf or 'default'}: {low * PAGE} is not the least")
    return low * PAGE


def nanoseconds_of(snapshot):
    """From the first event to the last of a snapshot in PyTorch's format; None where it does not say."""
    if ".pickle" not in snapshot:
        return None
    with gzip.open(snapshot) if snapshot.endswith(".gz") else open(snapshot, "rb") as file:
        times = [event["time_us"] for trace in pickle.load(file)["device_traces"] for event in trace if event.get("time_us")]
    return 1000 * (max(times) - min(times)) if times else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ashlar")
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--confs", default="default;expandable_segments:True;policy:ashlar")
    parser.add_argument("--waits", action="store_true")
    parser.add_argument("--best", metavar="CONFS", help="other settings, of which the best is shown")
    parser.add_argument("--shares", action="store_true")
    arguments = parser.parse_args()
    confs = ["" if conf == "default" else conf for conf in arguments.confs.split(";")]
    others = arguments.best.split(";") if arguments.best else []
    columns = " | reserved | ms | ms" + " | % | %" * arguments.shares + " | waits" * arguments.waits
    print("| trace | peak, MiB | " + " | ".join(f"`{conf or 'default'}`" + columns for conf in confs) +
          " | best | by" * bool(others) + " |")
    print("|---|--:|" + "--:|" * (4 + 2 * arguments.shares + arguments.waits) * len(confs) + "--:|---|" * bool(others))
    for trace in arguments.traces:
        # Blocks of other settings hold what is not split off: the peak is what the requests themselves take.
        rows = [(conf, replay(arguments.ashlar, trace, conf, AMPLE)) for conf in confs]
        peak = min(ample["peak_active"] for _, ample in rows)
        cells = [pathlib.Path(trace).name.removesuffix(".gz").removesuffix(".pickle")[:40], f"{peak / 2**20:,.0f}"]
        duration = nanoseconds_of(trace) if arguments.shares else None
        for conf, ample in rows:
            least = smallest(arguments.ashlar, trace, conf, ample)
            tight = replay(arguments.ashlar, trace, conf, least)
            cells.append(f"{least / peak:.3f}")
            cells.append(f"{ample['peak_reserved'] / peak:.3f}")
            cells += [f"{run['estimated_driver_ns'] / 1e6:,.0f}" for run in (ample, tight)]
            if arguments.shares:
                cells += [f"{100 * run['estimated_driver_ns'] / duration:.2f}" if duration else "-" for run in (ample, tight)]
            if arguments.waits:
                cells.append(f"{tight['stream_waits']:,}")
        if others:
            found = {conf: smallest(arguments.ashlar, trace, conf, replay(arguments.ashlar, trace, conf, AMPLE)) for conf in others}
            best = min(others, key=found.get)
            cells += [f"{found[best] / peak:.3f}", f"`{best}`"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    if os.environ.get("ASHLAR_CONF"):
        sys.exit("smallest_capacity: unset ASHLAR_CONF first: the settings are compared here")
    main()
