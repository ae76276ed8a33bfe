"""Programs by somebody who has read the guide and nothing of how causes are found: is the planted cause named first, and
the variable that holds the memory?

unseen/truth.json has for each what was planted: `kinds`, the cause's names as the guide has them, the first one's own, then
others that name the same thing (none: the guide has no name for it); the variable; the diff that cures it. A healthy one
needs its memory: nothing of the program may be called a leak. A measurement, not a gate: --only unseen, or --named.
"""
import json
import os
import re

import venvs
from bench import HERE
from rows import Row, Verdict
from sizes import mib

FOLDER = os.path.join(HERE, 'unseen')
OF_LEAKS = {'graph_kept_alive', 'outputs_kept', 'eval_accumulates', 'eval_without_no_grad', 'hooks_keep_activations',
            'exception_holds_frames', 'kv_cache_grows', 'loaded_twice', 'gradients_kept', 'reference_cycle'}
FOUND = ('likely', 'proven')


def truths():
    with open(os.path.join(FOLDER, 'truth.json'), encoding='utf-8') as file:
        return json.load(file)


def words_of(variable):
    """'self.k, self.v (CachedAttention)' -> {'k', 'v'}: the last part of each name."""
    names = re.sub(r'\(.*?\)', '', variable).split(',')
    return {re.sub(r'\W+$', '', re.sub(r'\[.*', '', name).strip()).split('.')[-1] for name in names}


def names_variable(holder, variable):
    return bool(words_of(variable) & set(re.findall(r'\w+', holder['name'])))


def measure(bench, name, truth):
    verdict = Verdict()
    run = bench.dry_run(venvs.python_of('torch-2.14.1'), [os.path.join(FOLDER, f'{name}.py')], ['--device', truth['device']],
                        cwd=bench.new_folder('unseen'), keeps=False)
    answer = run.report['explanation']
    found = [one for one in answer['causes'] if one['finding'] == 'found' and one['confidence'] in FOUND]
    first = found[0]['name'] if found else 'none'
    verdict.cells.update({'planted': truth['cause'], 'verdict': answer['verdict'], 'first': first})
    verdict.equal('fails', answer['verdict'] not in ('healthy', 'unknown'), truth['fails'])
    if truth['healthy']:
        verdict.scores['healthy programs are left alone'] = first not in OF_LEAKS and answer['verdict'] != 'leak'
        return verdict
    holders = sorted((answer['held'] or {'holders': []})['holders'], key=lambda one: -one['bytes'])
    verdict.cells['holds most'] = f'{mib(holders[0]["bytes"])} {holders[0]["name"]}' if holders else 'no names'
    verdict.scores['the planted cause is first'] = first in truth['kinds']
    verdict.scores['the variable holds most, or is next'] = any(names_variable(one, truth['variable']) for one in holders[:2])
    return verdict


def rows():
    return [Row('unseen', name, 15, lambda bench, n=name, t=truth: measure(bench, n, t), is_usual=False, is_measured=True,
                digest='') for name, truth in truths().items()]
