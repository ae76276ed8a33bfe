"""The real run of small operations, with PyTorch on the host: host_values_test.py beside this file."""
import os
import re

import venvs
from bench import HERE, start
from programs import HOME
from rows import Row, Verdict


def measure(_):
    run, verdict = start([venvs.python_of(HOME), os.path.join(HERE, 'host_values_test.py')]), Verdict()
    verdict.equal('exit code', run.code, 0)
    ran = re.search(r'^Ran (\d+) tests', run.words, flags=re.M)
    verdict.expect(ran and int(ran.group(1)) > 0 and 'skipped' not in run.words, f'no test was run: {run.last_line}')
    verdict.cells['seen'] = f'{ran.group(1) if ran else 0} tests'
    return verdict


def rows():
    return [Row('values', 'on the host', 10, measure)]
