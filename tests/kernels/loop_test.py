#!/usr/bin/env python3
"""The loop, closed: a workload that computes on the host runs out of a small memory in its first step, its capture is
explained, and under the setting that is said to get past the failure the same run goes to its end and learns. Nothing is
promised: no whole step was seen.

    loop_test.py ASHLAR
"""

import json
import os
import re
import subprocess
import sys
import tempfile

RUN = ["run", "gpt_training", "--device", "host", "--model", "tiny", "--batch", "16", "--lengths", "uniform:16-256",
       "--steps", "4", "--learning-rate", "0.003", "--capacity", "144MiB", "--json"]


def ashlar(program, *arguments, code=0):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stdout


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        capture = os.path.join(folder, "run.pickle")
        failed = json.loads(ashlar(program, *RUN, "--capture", capture, code=1))
        assert failed["out_of_memory"]["phase"] in ("forward", "backward"), failed
        explained = ashlar(program, "explain", capture)
    assert "VERDICT        fragmentation" in explained, explained
    assert not re.search(r"^FIX +export", explained, re.MULTILINE), explained
    named = re.search(r"^  (\S+) gets past this request; beyond it nothing is known", explained, re.MULTILINE)
    assert named, explained
    fits = json.loads(ashlar(program, *RUN, "--conf", named[1]))
    assert fits["out_of_memory"] is None and fits["steps_done"] == 4, fits
    assert fits["losses"][-1] < fits["losses"][0], fits
    again = json.loads(ashlar(program, *RUN, "--conf", named[1]))
    assert again["losses"] == fits["losses"], "the same run gave other losses"
    print(f"out of memory in {failed['out_of_memory']['phase']}; with {named[1]} loss {fits['losses']}")


if __name__ == "__main__":
    main(sys.argv[1])
