#!/usr/bin/env python3
"""What a call costs through a CUDA runtime that is linked in, beside the shared one: nvcc's default build and its twin, in turn.

    python3 bench/linked_runtime.py --build build/release [--rounds 7] [--calls 200000]

Both run over the hollow device. Nanoseconds, the median of the rounds; `recorded` is under `ashlar dry-run`, which writes each call on
device memory down with its stack. Exits with 77 where there is no nvcc.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TWINS = ('static', 'shared')


def nvcc():
    return shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')


def compiled(compiler, folder):
    for runtime in TWINS:
        subprocess.run([compiler, '-O2', '-cudart', runtime, '-o', os.path.join(folder, runtime),
                        os.path.join(HERE, 'linked_runtime.cu')], check=True)
    needed = subprocess.run(['ldd', os.path.join(folder, 'static')], capture_output=True, text=True, check=True).stdout
    if 'libcudart' in needed:
        sys.exit('linked_runtime: the program that nvcc links by default needs libcudart: nothing is compared')


def over_hollow(build):
    """The environment by which the hollow device is under a program, without a recorder."""
    hollow = os.path.join(os.path.abspath(build), 'hollow')
    return {**os.environ, 'LD_PRELOAD': os.path.join(hollow, 'libashlar_hollow.so'),
            'LD_AUDIT': os.path.join(hollow, 'libashlar_audit.so'), 'LD_LIBRARY_PATH': os.path.join(hollow, 'shims')}


def costs(command, environment=None):
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f'linked_runtime: {" ".join(command)} ended with {run.returncode}: {run.stderr.strip()[-300:]}')
    return {what: float(cost) for what, cost in (line.rsplit(': ', 1) for line in run.stdout.splitlines())}


def measure(folder, build, calls, rounds):
    """(what, 'static' or 'shared', whether it is recorded) -> a figure of each round."""
    found = {}
    program = os.path.join(os.path.abspath(build), 'bin', 'ashlar')
    for number in range(rounds):
        for runtime in TWINS if number % 2 == 0 else reversed(TWINS):
            file = os.path.join(folder, runtime)
            plain = costs([file, str(calls)], over_hollow(build))
            recorded = costs([program, 'dry-run', '--once', '--', file, str(max(calls // 20, 10))])
            for is_recorded, run in ((False, plain), (True, recorded)):
                for what, cost in run.items():
                    found.setdefault((what, runtime, is_recorded), []).append(cost)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', required=True)
    parser.add_argument('--calls', type=int, default=200_000)
    parser.add_argument('--rounds', type=int, default=7)
    given = parser.parse_args()
    if nvcc() is None:
        print('linked_runtime: skipped: there is no nvcc')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        compiled(nvcc(), folder)
        found = measure(folder, given.build, given.calls, given.rounds)
    print('| ns | linked in | shared | linked in, recorded | shared, recorded |\n|---|--:|--:|--:|--:|')
    for what in dict.fromkeys(key[0] for key in found):
        cells = [f'{statistics.median(found[what, runtime, is_recorded]):,.0f}' for is_recorded in (False, True)
                 for runtime in TWINS]
        print(f'| {what} | {" | ".join(cells)} |')


if __name__ == '__main__':
    main()
