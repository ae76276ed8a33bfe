"""The tuner beside PyTorch: what it promises, and what came of it.

Under `ashlar dry-run`, which records the program: the tuner goes by that recording, where a ring of its own cannot be.
"""
import re

import plugin
import venvs
from bench import PROGRAMS
from rows import Row, Verdict

LOOKS_SECONDS = 10  # between two looks of the tuner (python/ashlar_gpu/_torch_tuner.py)
MACHINE = ['--capacity', '16GiB']
SAYS = re.compile(r'ashlar: tune: (advised|switched to|kept) (?:start with )?(\S+): ([\d,.]+) MiB reserved instead of ([\d,.]+) MiB')


def dry_run(bench, flags, seconds):
    run = bench.dry_run(venvs.python_of('torch-2.14.1'), ['-m', 'ashlar_gpu.torch', *flags, 'tuned.py', str(seconds)], MACHINE,
                        plugin.environment(bench), most_seconds=180, cwd=PROGRAMS)
    verdict = Verdict()
    verdict.equal(f'exit code of {" ".join(flags)}', run.code, 0)
    verdict.equal('programs that told', len(run.told), 1)
    return run, verdict


def said(run):
    """what -> (setting, MiB, MiB before), the last of each."""
    def number(text):
        return float(text.replace(',', ''))
    return {what: (conf, number(now), number(before)) for what, conf, now, before in SAYS.findall(run.words)}


def mib(run):
    return run.told[0]['peak_reserved'] / 2**20


def advises(bench):
    run, verdict = dry_run(bench, ['--tune', 'advise'], 1.2 * LOOKS_SECONDS)
    if verdict.failures or 'advised' not in said(run):
        verdict.expect(verdict.failures, f'nothing is advised: {run.words[-300:]}')
        return verdict
    conf, promised, before = said(run)['advised']
    again, verdict = dry_run(bench, ['--conf', conf], 1)
    if not verdict.failures:
        verdict.expect(mib(again) <= promised, f'{conf}: {promised} MiB were promised, {mib(again)} MiB reserved')
        verdict.expect(mib(run) >= before, f'{before} MiB are said to be reserved without it, {mib(run)} MiB are')
        verdict.cells.update({'setting': conf, 'before': f'{mib(run):,.0f} MiB', 'promised': f'{promised:,.0f} MiB',
                              'with it': f'{mib(again):,.0f} MiB, started anew'})
    return verdict


def switches(bench):
    run, verdict = dry_run(bench, ['--tune', 'switch'], 2.7 * LOOKS_SECONDS)
    words = said(run)
    if verdict.failures or 'switched to' not in words or 'kept' not in words:
        verdict.expect(verdict.failures, f'nothing is switched to and kept: {run.words[-300:]}')
        return verdict
    conf, promised, _ = words['switched to']
    kept, really, before = words['kept']
    verdict.equal('kept', kept, conf)
    verdict.expect(really <= promised, f'{conf}: {promised} MiB were promised, {really} MiB reserved')
    verdict.cells.update({'setting': conf, 'before': f'{before:,.0f} MiB', 'promised': f'{promised:,.0f} MiB',
                          'with it': f'{really:,.0f} MiB, from the switch on'})
    return verdict


def rows():
    return [Row('tuner', 'advises', 40, advises), Row('tuner', 'switches', 45, switches)]
