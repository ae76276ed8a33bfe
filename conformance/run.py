"""Runs real programs over the hollow device, and holds what they show to what is known of them. docs/internals/truth.md

    run.py --ashlar build/release/bin/ashlar               # a sample of the rows, another for each commit, within ten minutes
    run.py --ashlar ... --seed 20261124                    # that sample again
    run.py --ashlar ... --all                              # every row, other releases of PyTorch among them
    run.py --ashlar ... --only what-if,captures            # every row of these groups
    run.py --ashlar ... --only advice --results FILE       # a measurement: in no sample, and not in --all
    run.py --ashlar ... --table docs/internals/truth.md    # and writes the table

The last line counts what passed, failed and was skipped; the exit code is 1 where something failed.
"""
import argparse
import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bench as bench_module
import plan
import table
from kept import Kept
from rows import Result, judge


SAMPLE_SECONDS = 510


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ashlar', required=True, help='the built program')
    parser.add_argument('--all', action='store_true', help='every row, and all releases')
    parser.add_argument('--only', default='', help='groups of rows, with commas between')
    parser.add_argument('--named', default='', help='only rows with this in their name')
    parser.add_argument('--releases', default='', help='of PyTorch, with commas between; 2.14.1, or all with --all')
    parser.add_argument('--seed', type=int, help="of the sample; the commit's name, where it is not given")
    parser.add_argument('--seconds', type=float, help='what it may take: no row is begun later (510 for a sample)')
    parser.add_argument('--jobs', type=int, default=1, help='rows at a time; those that claim a time run alone')
    parser.add_argument('--results', help='a file: what passed with this build is not run again')
    parser.add_argument('--table', help='writes the table to this file')
    parser.add_argument('--list', action='store_true', help='prints the rows, and runs none')
    return parser.parse_args()


def show(result):
    words = [f'{key} {value}' for key, value in result.cells.items() if key != 'command']
    print(f'{result.state:7} {result.seconds:6.1f} s  {result.row.group}: {result.row.name}  {", ".join(words)}')
    for line in result.lines:
        print(f'        {line}')
    sys.stdout.flush()


def run_one(row, bench, kept):
    began = time.monotonic()
    result = kept.result_of(row)
    if result is None and time.monotonic() > bench.deadline:
        result = Result(row, 'skipped', {}, ['the time is up'])
    if result is None:
        result = judge(row, bench)
        result.seconds = time.monotonic() - began
        kept.add(result)
    show(result)
    return result


def run_all(rows, bench, jobs, kept):
    """Those that claim a time come first, one by one."""
    results = [run_one(row, bench, kept) for row in rows if row.is_alone]
    shared = [row for row in rows if not row.is_alone]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results += list(pool.map(lambda row: run_one(row, bench, kept), shared))
    return sorted(results, key=lambda result: rows.index(result.row))


def seed_of_commit():
    """The same commit has the same sample on every day; 0 outside a checkout."""
    done = subprocess.run(['git', '-C', os.path.dirname(os.path.abspath(__file__)), 'rev-parse', '--short=7', 'HEAD'],
                          capture_output=True, text=True, check=False)
    return int(done.stdout, 16) if done.returncode == 0 else 0


def choose(flags):
    releases = plan.releases(flags.releases, flags.all)
    rows = plan.rows(releases, flags.all)
    if not flags.only and not flags.named:
        rows = [row for row in rows if not row.is_measured]
    if flags.only:
        rows = [row for row in rows if row.group in flags.only.split(',')]
    if flags.named:
        rows = [row for row in rows if flags.named in row.name]
    if flags.all or flags.only or flags.named:
        return rows
    seed = flags.seed if flags.seed is not None else seed_of_commit()
    flags.seconds = flags.seconds or SAMPLE_SECONDS
    chosen = plan.sample(rows, seed, flags.seconds)
    print(f'a sample of {len(chosen)} of {len(rows)} rows; again with --seed {seed}', flush=True)
    return chosen


def stop(*_):
    bench_module.end_all()
    os._exit(130)


def main():
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    flags = arguments()
    rows = choose(flags)
    if flags.list:
        for row in rows:
            print(f'{row.group}: {row.name}')
        return 0
    folder = tempfile.mkdtemp(prefix='ashlar-real-')
    try:
        bench = bench_module.Bench(os.path.abspath(flags.ashlar), folder, os.environ.get('ASHLAR_SHARED_DIR'))
        if flags.seconds:
            bench.deadline = time.monotonic() + flags.seconds
        results = run_all(rows, bench, flags.jobs, Kept(flags.results, bench.ashlar))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if flags.table:
        table.write(flags.table, results, bench, plan.command(flags))
    counts = {state: sum(result.state == state for result in results) for state in ('passed', 'failed', 'skipped')}
    print(', '.join(f'{count} {state}' for state, count in counts.items()))
    return 1 if counts['failed'] or not results else 0


if __name__ == '__main__':
    sys.exit(main())
