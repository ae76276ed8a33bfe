#!/usr/bin/env python3
"""Compares `ashlar replay --json` with the numbers of every golden run: peaks, counts, device calls.

Usage: golden_json.py ASHLAR. The golden files are in $ASHLAR_SHARED_DIR, else in ../shared beside the repository;
exit status 77 (skipped) without them. Prints each difference, then `N of M match` for each set of files.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

KEYS = ["peak_reserved", "peak_allocated", "peak_active", "peak_requested", "peak_inactive_split", "end_reserved",
        "retries", "ooms", "oom_rejections", "trace_ooms", "segments_allocated", "segments_freed", "cudaMalloc",
        "cudaFree", "cuMemMap", "cuMemUnmap"]


def is_compared(key, want, uses_streams):
    # The order in which streams complete within one sweep decides this peak; upstream's order is that of a hash table.
    return want is not None and not (key == "peak_inactive_split" and uses_streams)


def replay(program, folder, name, run):
    trace = os.path.join(folder, "traces", run["trace"] + ".txt.gz")
    command = [program, "replay", trace, "--json", "--compat", "torch-" + name.split("/")[0], "--conf", run["conf"],
               "--capacity", str(run["capacity"])]
    if run["memory_fraction"] is not None:
        command += ["--memory-fraction", repr(run["memory_fraction"])]
    if run["events_complete_immediately"]:
        command += ["--events-complete-immediately"]
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        return [f"{name}: exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}"]
    got = json.loads(done.stdout)
    uses_streams = "streams" in run["trace"]
    return [f"{name}: {key} is {got[key]}, want {run[key]}" for key in KEYS
            if key in run and is_compared(key, run[key], uses_streams) and got[key] != run[key]]


def check(program, folder):
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        runs = sorted(json.load(file).items())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda run: replay(program, folder, *run), runs))
    for difference in [line for result in results for line in result][:20]:
        print(difference)
    matched = sum(not result for result in results)
    print(f"{os.path.basename(folder)}: {matched} of {len(runs)} match")
    return matched == len(runs) and len(runs) > 0


def main():
    repository = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
    shared = os.environ.get("ASHLAR_SHARED_DIR", os.path.join(repository, "..", "shared"))
    if not os.path.isdir(os.path.join(shared, "golden")):
        print(f"skipped: no golden files in {shared}")
        return 77
    results = [check(sys.argv[1], os.path.join(shared, name)) for name in ("golden", "golden-real", "golden-latest")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
