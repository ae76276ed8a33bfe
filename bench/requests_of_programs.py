#!/usr/bin/env python3
"""What recorded programs ask of an allocator: how many blocks live at once, how many go right after they came, and on how many streams.
So a goal of speed can be set against what somebody feels.

    bench/requests_of_programs.py --ashlar build/release/bin/ashlar snapshot.pickle history.trace ...

Files are what `ashlar convert` reads. Those of fewer than 500 requests are left out. A line for each on stderr; the last on stdout.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

LEAST_REQUESTS = 500


class Program:
    def __init__(self, name, lines):
        live, streams, newest = set(), set(), None
        self.name, self.requests, self.most_live, self.freed_as_newest = name, 0, 0, 0
        for line in lines:
            letter, *fields = line.split() or [""]
            if letter == "a":
                newest = fields[0]
                live.add(newest)
                streams.add(fields[2])
                self.requests += 1
                self.most_live = max(self.most_live, len(live))
            elif letter == "f":
                live.discard(fields[0])
                self.freed_as_newest += fields[0] == newest
                newest = None
        self.streams = len(streams)

    @property
    def newest_share(self):
        return self.freed_as_newest / self.requests


def read(ashlar, path, folder):
    """None: ashlar cannot convert it."""
    out = os.path.join(folder, "requests.trace")
    done = subprocess.run([ashlar, "convert", path, out], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write("%s: %s\n" % (path, done.stderr.strip().splitlines()[-1:] or "not converted"))
        return None
    with open(out, encoding="utf-8") as lines:
        program = Program(path, lines)
    os.remove(out)
    return program


def summary(programs):
    live = sorted(program.most_live for program in programs)
    return ("%d programs, %s requests; live blocks at once: median %s, nine of ten at most %s, most %s; freed right after they came: "
            "%.1f %% in the mean, at most %.1f %%; on several streams: %d"
            % (len(programs), f"{sum(p.requests for p in programs):,}", f"{statistics.median(live):,.0f}",
               f"{live[(9 * len(live) - 1) // 10]:,}", f"{live[-1]:,}", 100 * statistics.mean(p.newest_share for p in programs),
               100 * max(p.newest_share for p in programs), sum(p.streams > 1 for p in programs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ashlar", required=True)
    parser.add_argument("files", nargs="+")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [read(given.ashlar, path, folder) for path in given.files]
    programs = [program for program in found if program is not None and program.requests >= LEAST_REQUESTS]
    if not programs:
        sys.exit("bench/requests_of_programs.py: none of these has %d requests" % LEAST_REQUESTS)
    for one in programs:
        sys.stderr.write("%s: %d requests, %d live, %.1f %% newest, %d streams\n"
                         % (one.name, one.requests, one.most_live, 100 * one.newest_share, one.streams))
    print(summary(programs))


if __name__ == "__main__":
    main()
