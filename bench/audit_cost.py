#!/usr/bin/env python3
"""What the auditor costs a program's start: a Python without and with LD_AUDIT, in turn, all else as dry-run sets it.

    ashlar dry-run --once -- python bench/audit_cost.py [--pairs 20] [STATEMENT]     'import torch', where none is given

Prints the medians of each, and the median of the pairs' ratios, by the clock and by processor time.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time


def seconds_of(statement, environment):
    """By the clock, and of the processor, the program's children included."""
    began = time.monotonic()
    child = subprocess.Popen([sys.executable, '-c', statement], env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f'audit_cost: {statement!r} ended with {child.returncode}: nothing is measured')
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('statement', nargs='?', default='import torch')
    parser.add_argument('--pairs', type=int, default=20)
    given = parser.parse_args()
    audited = dict(os.environ)
    if 'libashlar_audit.so' not in audited.get('LD_AUDIT', ''):
        sys.exit('audit_cost: LD_AUDIT has no libashlar_audit.so: start it by ashlar dry-run')
    plain = {key: value for key, value in audited.items() if key != 'LD_AUDIT'}
    seconds_of(given.statement, audited)  # reads the files
    pairs = []
    for number in range(given.pairs):
        order = (plain, audited) if number % 2 == 0 else (audited, plain)
        one, other = (seconds_of(given.statement, environment) for environment in order)
        pairs.append((one, other) if order[0] is plain else (other, one))
    for index, clock in enumerate(('by the clock', 'processor')):
        without, with_it = ([run[index] for run in side] for side in zip(*pairs))
        ratios = sorted(b / a for a, b in zip(without, with_it))
        quarter = len(ratios) // 4
        print(f'{clock}: {statistics.median(without):.3f} s without, {statistics.median(with_it):.3f} s with it; ratio '
              f'{statistics.median(ratios):.3f}, half of the pairs within {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}')


if __name__ == '__main__':
    main()
