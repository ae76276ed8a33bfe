"""`ashlar fit` on real programs: each fails on its card, a set is found, and with its lines written in by hand the program fits.

The peak of the program that was changed by hand is that of the row, to the byte.
"""
import dataclasses
import json
import os

import programs
import venvs
from bench import HERE, start
from rows import Row, Verdict
from sizes import mib

FOLDER = os.path.join(HERE, 'fitted')
MOST_SECONDS = 900


@dataclasses.dataclass
class Fitted:
    capacity: str
    found: list  # the cheapest set
    written: list  # what a reader of the answer writes: (old, new)
    flags: tuple = ()


PROGRAMS = {
    'evaluating': Fitted('4GiB', ['no-grad-eval'], [
        ('outputs.append(model(x))', 'with torch.no_grad():\n            outputs.append(model(x))')]),
    'loader': Fitted('3GiB', ['half-batch'], [
        ('batch_size=8192', 'batch_size=4096'),
        ('loss.backward()', '(loss / 2).backward()'),
        ('    optimizer.step()\n    optimizer.zero_grad()',
         '    if step % 2 == 0:\n        optimizer.step()\n        optimizer.zero_grad()')]),
}


def fit(bench, name, fitted):
    command = [bench.ashlar, 'fit', '--capacity', fitted.capacity, '--budget', '15min', '--json', *fitted.flags, '--',
               venvs.python_of(programs.HOME), os.path.join(FOLDER, f'{name}.py')]
    run = start(command, most_seconds=MOST_SECONDS, cwd=bench.new_folder('fit'))
    if not run.out.startswith('{'):
        raise RuntimeError(f'no answer: exit code {run.code}: {run.last_line}')
    return json.loads(run.out)


def by_hand(bench, name, fitted):
    """A dry run on the card of the program with the lines written in."""
    with open(os.path.join(FOLDER, f'{name}.py')) as file:
        text = file.read()
    for old, new in fitted.written:
        if text.count(old) != 1:
            raise RuntimeError(f'{name}.py has {old!r} {text.count(old)} times')
        text = text.replace(old, new)
    folder = bench.new_folder('by_hand')
    script = os.path.join(folder, 'train.py')
    with open(script, 'w') as file:
        file.write(text)
    return bench.dry_run(venvs.python_of(programs.HOME), [script], ['--capacity', fitted.capacity], cwd=folder, keeps=False)


def judge_fit(bench, name, fitted):
    verdict = Verdict()
    answer = fit(bench, name, fitted)
    verdict.equal('fits as it is', answer['as_it_is']['fits'], False)
    verdict.equal('the set', answer['set'] and answer['set']['changes'], fitted.found)
    if not answer['set']:
        return verdict
    run = by_hand(bench, name, fitted)
    verdict.equal('exit code of the program changed by hand', run.code, 0)
    verdict.equal('its requests that found no memory', run.torch()['ooms'], 0)
    verdict.equal('its peak reserved', run.torch()['peak_reserved_bytes'], answer['set']['peak_reserved_bytes'])
    verdict.cells.update({'card': fitted.capacity, 'as it is': mib(answer['as_it_is']['peak_reserved_bytes']),
                          'set': ', '.join(answer['set']['changes']), 'changed': mib(answer['set']['peak_reserved_bytes']),
                          'runs': str(answer['runs'])})
    return verdict


def rows():
    return [Row('fit', name, 120, lambda bench, n=name, f=fitted: judge_fit(bench, n, f)) for name, fitted in PROGRAMS.items()]
