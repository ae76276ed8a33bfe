"""The estimator against real runs: estimate.py beside this file prints the rows, and its exit code judges them."""
import datetime
import os

import programs
import venvs
from bench import HERE, start
from rows import Row, Skip, Verdict

SAMPLE_ROWS = 4


def measure(bench, is_all):
    script = os.path.join(HERE, 'estimate.py')
    if not os.path.exists(script):
        raise Skip('estimate.py is not here')
    python = venvs.python_of(programs.HOME)
    seed = datetime.date.today().strftime('%Y%m%d')
    which = ['--all'] if is_all else ['--rows', str(SAMPLE_ROWS), '--seed', seed]
    run = start([python, script, bench.ashlar, '--python', python] + which, most_seconds=3600)
    verdict = Verdict()
    verdict.equal('exit code', run.code, 0)
    verdict.expect(run.out.count('\n|') > 2, f'no table: {run.last_line}')
    verdict.cells['table'] = f'{run.out.count(chr(10) + "|") - 1} rows'
    verdict.text = run.out
    return verdict


def rows(is_all):
    return [Row('estimate', 'all rows' if is_all else 'a sample', 900 if is_all else 60,
                lambda bench: measure(bench, is_all))]
