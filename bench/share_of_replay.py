#!/usr/bin/env python3
"""What a faster replay would be worth: the share of `ashlar explain`'s processor time in which the allocator's code runs, by samples of perf.

    bench/share_of_replay.py --ashlar build/release/bin/ashlar snapshot.pickle ...

A line for each file on stderr; the last, over all, on stdout. Files of fewer than 50 samples are left out.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

SAMPLES_A_SECOND = 1999
LEAST_SAMPLES = 50
SAMPLE_LINE = re.compile(r"\s+[\d.]+%\s+(\d+)\s+\S+\s+\S+\s+\[.\]\s+(.*)")
OF_THE_REPLAY = re.compile(r"ashlar::(core|policy|device)::|ashlar::replay::RequestReplay")


def samples(ashlar, path, folder):
    """(all, those in the allocator's code and in the loop that asks it)"""
    data = os.path.join(folder, "perf.data")
    subprocess.run(["perf", "record", "-F", str(SAMPLES_A_SECOND), "-e", "cpu-clock", "-o", data, ashlar, "explain", path],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    report = subprocess.run(["perf", "report", "-i", data, "--no-children", "-n", "--stdio"], capture_output=True, text=True, check=True)
    counted = [(int(found[1]), found[2]) for found in map(SAMPLE_LINE.match, report.stdout.splitlines()) if found]
    return sum(count for count, _ in counted), sum(count for count, symbol in counted if OF_THE_REPLAY.search(symbol))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ashlar", required=True)
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        for path in given.files:
            of_all, of_replay = samples(given.ashlar, path, folder)
            if of_all < LEAST_SAMPLES:
                continue
            shares.append(100 * of_replay / of_all)
            sys.stderr.write("%s: %d samples, %.1f %% in the replay\n" % (path, of_all, shares[-1]))
    if not shares:
        sys.exit("bench/share_of_replay.py: none of these took %d samples" % LEAST_SAMPLES)
    print("%d files: the replay takes %.1f %% of explain's processor time (median), at most %.1f %%"
          % (len(shares), statistics.median(shares), max(shares)))


if __name__ == "__main__":
    main()
