#!/usr/bin/env python3
"""Which threads ask PyTorch's allocator in a program, stream by stream: how many requests follow one of another thread on the same
stream, and how many so closely that the two may meet at a lock.

    ashlar dry-run -- /path/to/venv/bin/python bench/torch_threads.py --results FILE train.py ...     # a line is added to FILE
    bench/torch_threads.py --sum FILE

The counter is compiled by g++ against the release's own headers, and needs CUDA's (CUDA_HOME, else /usr/local/cuda).
"""

import argparse
import atexit
import ctypes
import json
import os
import runpy
import sys

LEAST_REQUESTS = 500


class Counts(ctypes.Structure):
    """As torch_threads.cc has them."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("requests", "handed_over", "within_10us", "within_1us", "beside", "threads")]


def write_counts(library, path, program):
    counts = Counts()
    library.read_counts(ctypes.byref(counts))
    with open(path, "a", encoding="utf-8") as out:
        out.write(json.dumps({"program": program, **{name: getattr(counts, name) for name, _ in Counts._fields_}}) + "\n")


def run(results, arguments):
    import torch
    import torch_client

    torch.cuda.init()
    library = torch_client.load("torch_threads", ["c10", "c10_cuda"])
    library.attach()
    atexit.register(write_counts, library, results, " ".join([os.path.basename(arguments[0]), *arguments[1:]]))
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


def summary(path):
    with open(path, encoding="utf-8") as lines:
        programs = [one for one in map(json.loads, lines) if one["requests"] >= LEAST_REQUESTS]
    if not programs:
        sys.exit("bench/torch_threads.py: no program of %s has %d requests" % (path, LEAST_REQUESTS))

    def share(name):
        shares = [100 * one[name] / one["requests"] for one in programs]
        return "%.3f %% in the mean, at most %.3f %%, none in %d" % (sum(shares) / len(shares), max(shares), shares.count(0))

    print("%d programs, %s requests, %d of several threads" % (len(programs), f"{sum(one['requests'] for one in programs):,}",
                                                              sum(one["threads"] > 1 for one in programs)))
    for name, what in (("handed_over", "after another thread's on the same stream"), ("within_10us", "within 10 us"),
                       ("within_1us", "within 1 us"), ("beside", "within 10 us of another thread's on any stream")):
        print("%s: %s" % (what, share(name)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", default="torch_threads.jsonl", help="a line for each program is added to this file")
    parser.add_argument("--sum", help="tells what such a file has")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.sum:
        summary(given.sum)
    elif given.program:
        run(os.path.abspath(given.results), given.program)
    else:
        parser.error("a program, or --sum FILE")


if __name__ == "__main__":
    main()
