"""Programs that go on as values of the device say, which they are given: `ashlar dry-run --value`.

    conformance/run.py --ashlar build/release/bin/ashlar --only given

Each program of conformance/programs/decides.py runs with its values given where it reads them, with them written into it, and as it
is. What it allocates and reserves is equal, to the byte, in the first two, and another where it reads zeros.
"""
import json
import os

import venvs
from bench import AMPLE, PROGRAMS
from rows import Row, Verdict
from sizes import mib

USUAL = 'torch-2.14.1'
PROGRAM = os.path.join(PROGRAMS, 'decides.py')
WHAT = {'stop': 'an early end by a loss', 'wait': 'a generation until one is done', 'batch': 'a batch of the longest length',
        'rows': 'rows that a mask selects'}


def flags(name, values):
    with open(PROGRAM, encoding='utf-8') as source:
        (line,) = [i for i, text in enumerate(source, 1) if text.rstrip().endswith('# reads: ' + name)]
    return [word for value in values for word in ('--value', f'decides.py:{line}={json.dumps(value)}')]


def values_of(name):
    """As the program has them written, read without a PyTorch."""
    with open(PROGRAM, encoding='utf-8') as source:
        (line,) = [text for text in source if text.startswith('VALUES = ')]
    scope = {}
    exec(line, scope)
    return scope['VALUES'][name]


def given(bench, name):
    verdict, values = Verdict(), values_of(name)

    def run(words, of_run):
        done = bench.dry_run(venvs.python_of(USUAL), [PROGRAM, *words, name], AMPLE + ['--names', 'off'] + of_run, keeps=False)
        verdict.expect(done.code == 0, f'{words} {of_run} ended with {done.code}: {done.last_line}')
        return done

    ways = {'given': run([], flags(name, values)), 'written': run(['written'], []), 'zeros': run([], [])}
    if verdict.failures:
        return verdict
    told = {way: done.told[0] for way, done in ways.items()}
    verdict.equal('what it did', told['given']['did'], told['written']['did'])
    verdict.equal('peaks', told['given']['peaks'], told['written']['peaks'])
    verdict.expect(told['zeros']['peaks'] != told['given']['peaks'], 'its memory does not go by the value')
    reads = sum(one['reads'] for one in ways['given'].report['given_values'])
    verdict.equal('values that were read', reads, len(values))
    verdict.cells.update({'what': WHAT[name], 'values': ', '.join(map(json.dumps, values))})
    verdict.cells.update({way: mib(one['peaks'][name][0]) for way, one in told.items()})
    return verdict


def rows():
    return [Row('given', name, 20, lambda bench, of=name: given(bench, of)) for name in WHAT]
