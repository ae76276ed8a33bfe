"""A rank of Megatron-core (bench/megatron_rank.py) under the plan of its own run.

    conformance/run.py --ashlar build/release/bin/ashlar --only megatron

A case runs once over the hollow device and is planned; the smallest device without and with the plan, both by replay, are held
against what the run holds.
"""
import json
import os

import venvs
from bench import AMPLE, start
from rows import Row, Verdict
from sizes import mib

RANK = os.path.join(os.path.dirname(__file__), '..', 'bench', 'megatron_rank.py')
CASES = {  # model and case -> the most that the device with the plan may have, in multiples of what is held
    ('gpt2', 'VR'): 1.01,
    ('llama', 'VR'): 1.01,
}


def fits(bench, words, most):
    verdict = Verdict()
    run = bench.dry_run(venvs.python_of('megatron'), [RANK, *words, '--microbatches', '4'], AMPLE)
    verdict.expect(run.code == 0, f'ended with {run.code}: {run.last_line}')
    if verdict.failures:
        return verdict
    plan = bench.path(f'megatron/{"-".join(words)}.plan')
    planned = start([bench.ashlar, 'plan', run.histories[0], '-o', plan, '--repeats', '--json'])
    verdict.expect(planned.code == 0, f'plan ended with {planned.code}: {planned.last_line}')
    if verdict.failures:
        return verdict
    answer = json.loads(planned.out)
    held = answer['peak_allocated_bytes']
    needs = {what: answer[what]['smallest_device_bytes'] for what in ('without_plan', 'with_plan')}
    verdict.expect(needs['with_plan'] <= min(most * held, needs['without_plan']),
                   f'with its plan it needs {needs["with_plan"] / held:.3f} times what it holds')
    verdict.cells.update({'holds': mib(held), 'needs by default': f'{needs["without_plan"] / held:.3f}',
                          'needs with its plan': f'{needs["with_plan"] / held:.3f}'})
    return verdict


def rows():
    return [Row('megatron', ' '.join(words), 60, lambda bench, of=(words, most): fits(bench, *of), is_usual=False)
            for words, most in CASES.items()]
