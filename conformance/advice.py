"""Seeded programs: is the planted cause named first, with its bytes, and does the advice hold when it is followed?

A measurement, not a gate: its rows run where they are asked for (--only advice, or --named), and never in a sample or
with --all. A program runs over the hollow device and is explained; what is to be pasted is, and the program runs again.
"""
import dataclasses
import hashlib
import json
import os
import re

import advice_judge
import answers
import venvs
from bench import HERE, start
from held_out import HELD_OUT
from page_readers import PAGE_READERS
from rows import Row, Verdict
from seeds import SEEDS
from sizes import mib

SEEDED = os.path.join(HERE, 'seeded')
SWEPT = ['--json', '--budget', '60']
ALL = SEEDS + HELD_OUT + PAGE_READERS


def noted(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as file:
        return json.load(file)['bytes']


def run_seed(bench, seed, conf=None):
    """(run, its answer, the bytes that the program noted of its sickness)"""
    note = os.path.join(bench.new_folder('seed'), 'note')
    settings = seed.conf if conf is None else conf
    flags = ['--reproducible', '--skip-init', '--capacity', seed.capacity] + list(seed.flags)
    flags += ['--conf', settings] if settings else []
    run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-B', seed.file] + seed.arguments(), flags,
                        {'SEEDED_NOTE': note}, cwd=SEEDED)
    if run.report is None or run.report['explanation'] is None:
        raise RuntimeError(f'no explanation: it ended with {run.code}: {run.last_line}')
    return run, answers.read(run.report), noted(note)


def show(seed, answer, verdict):
    verdict.cells.update({'capacity': seed.capacity, 'planted': seed.causes[0] if seed.causes else 'nothing',
                          'verdict': answer.verdict, 'failures': str(answer.failures),
                          'retries': str(answer.retries), 'peak': mib(answer.peak_bytes),
                          'causes named': advice_judge.names_of(answer)})


def follow(bench, seed, answer, verdict):
    """Pastes what is to be pasted, if anything."""
    promise = answer.promise
    verdict.cells['pasted'] = promise.conf if promise else '–'
    if promise is None:
        return
    what = 'no failure' if promise.cures_failure else 'a lower peak'
    verdict.cells['promised'] = what if promise.peak_bytes is None else f'{what}, {mib(promise.peak_bytes)}'
    _, rerun, _ = run_seed(bench, seed, promise.conf)
    verdict.cells['really'] = f'{rerun.failures} failures' if rerun.failures else mib(rerun.peak_bytes)
    advice_judge.judge_promise(answer, rerun, verdict)


def measure_sick(bench, seed):
    verdict = Verdict()
    run, answer, bytes_noted = run_seed(bench, seed)
    show(seed, answer, verdict)
    if answer.failures:
        (command,) = run.report['explanation']['next_lines']
        verdict.expect(command.startswith(f'ashlar fit --capacity {seed.capacity} ') and f' {seed.file}' in command.partition(' -- ')[2],
                       f'what is to be tried next: {command}')
    if seed.has_bytes and bytes_noted is not None:
        verdict.cells['planted bytes'] = mib(bytes_noted)
    advice_judge.judge_sick(seed, answer, bytes_noted, verdict)
    follow(bench, seed, answer, verdict)
    return verdict


def sweep(bench, history):
    done = start([bench.ashlar, 'sweep', history] + SWEPT)
    if done.code != 0:
        raise RuntimeError(f'ashlar sweep: {done.last_line}')
    return json.loads(done.out)


def best_swept(swept):
    """(setting, peak) of the lowest peak without a failure, of those that are not known to be bad."""
    usable = [row for row in swept['rows'] if not row['ooms'] and row['risk'] != 'not_recommended' and row['conf']]
    peaks = [(row['traces'][0]['peak_reserved_bytes'], row['conf']) for row in usable]
    return tuple(reversed(min(peaks))) if peaks else (None, None)


def rerun_of_best(bench, seed, answer, swept):
    """The peak of a real run, where the search found a setting that seems worth it."""
    conf, peak = best_swept(swept)
    if peak is None or peak > (1 - advice_judge.WORTH) * answer.peak_bytes:
        return None
    return run_seed(bench, seed, conf)[1].peak_bytes


def measure_healthy(bench, seed):
    verdict = Verdict()
    run, answer, _ = run_seed(bench, seed)
    show(seed, answer, verdict)
    swept = sweep(bench, run.histories[0])
    advice_judge.expect_healthy(answer, rerun_of_best(bench, seed, answer, swept))
    pasted = answers.PASTE.search(swept['paste'] or '')
    advice_judge.judge_healthy(answer, pasted and pasted[1], verdict)
    follow(bench, seed, answer, verdict)
    return verdict


def imported_by(name, seen=()):
    """The file and those beside it that it imports."""
    with open(os.path.join(SEEDED, name), encoding='utf-8') as file:
        modules = re.findall(r'^from (\w+) import', file.read(), re.MULTILINE)
    out = {name}
    for other in (f'{module}.py' for module in modules):
        if other not in seen and os.path.exists(os.path.join(SEEDED, other)):
            out |= imported_by(other, out | set(seen))
    return out


def digest(seed):
    """Of the seed and the files that its program is made of: a kept result is of these."""
    words = hashlib.sha256(repr(dataclasses.astuple(seed)).encode())
    for name in sorted(imported_by(seed.file)):
        with open(os.path.join(SEEDED, name), 'rb') as file:
            words.update(file.read())
    return words.hexdigest()[:16]


def rows():
    measures = {True: measure_sick, False: measure_healthy}
    return [Row('advice', seed.name, 20, lambda bench, s=seed: measures[bool(s.causes)](bench, s), is_usual=False,
                is_measured=True, digest=digest(seed)) for seed in ALL]
