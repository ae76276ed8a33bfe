"""policy:ashlar under real PyTorch, as its plug-in: a training program ends where 1.02 times what it holds are left.

    conformance/run.py --ashlar build/release/bin/ashlar --only policy

The program runs three times over the hollow device: where memory is ample, which tells what it holds; and on the small
device, under PyTorch's own allocator and under ours. Another program fails where 1.03 times what it holds are left, is
explained, and runs again as `ashlar explain` says: no setting of PyTorch is promised to do, our allocator is, and does.
"""
import json
import os
import re
import typing

import captures
import venvs
from bench import start
from plugin import UNDER_OURS, environment
from programs import HOME
from rows import Row, Verdict

CONTEXT_MIB = 500
AMPLE_MIB = 80 << 10
MOST_SHARE = 1.02
ADVISED_SHARE = 1.03
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
KINDS = {  # of captures/train.py: flags of dry-run
    'train': [],
    'streams': captures.SIDE_STREAMS,
    'pool': [],
    'empty': [],
}
PRINTED = re.compile(r' alloc (\d+) res (\d+) retries (\d+) ooms (\d+)')


class Ran(typing.NamedTuple):
    history: str
    held: int  # MiB at the peak, as what was reserved
    reserved: int
    retries: int
    failures: int


def run(bench, program, capacity_mib, ours=False, flags=(), more=()):
    """`program`: its file and name."""
    out = os.path.join(bench.new_folder('policy'), 'out.pickle')
    words = (UNDER_OURS if ours else []) + [*program, out, *more]
    conf = {'ASHLAR_CONF': 'policy:ashlar', **environment(bench)} if ours else {}
    machine = ['--capacity', f'{capacity_mib}MiB', '--context', f'{CONTEXT_MIB}MiB', *flags]
    done = bench.dry_run(venvs.python_of(HOME), words, machine, conf, keeps=False)
    printed = PRINTED.search(done.words + done.out)
    if done.code != 0 or printed is None:
        raise RuntimeError(f'{program[1]}, {"ours" if ours else "native"}: ended with {done.code}: {done.last_line}')
    return Ran(out, *map(int, printed.groups()))


def explained(bench, history):
    done = start([bench.ashlar, 'explain', history, '--json'])
    if done.code != 0:
        raise RuntimeError(f'ashlar explain: {done.last_line}')
    return json.loads(done.out)


def fits(bench, kind):
    verdict = Verdict()
    program = [os.path.join(captures.folder(bench), 'train.py'), kind]
    flags = KINDS[kind]
    ample = run(bench, program, AMPLE_MIB, flags=flags)
    verdict.equal('failures where memory is ample', ample.failures, 0)
    most = int(MOST_SHARE * ample.held)
    native = run(bench, program, CONTEXT_MIB + most, flags=flags)
    ours = run(bench, program, CONTEXT_MIB + most, ours=True, flags=flags)
    verdict.equal('failures of policy:ashlar', ours.failures, 0)
    verdict.cells.update({'holds': f'{ample.held:,} MiB', 'reserved by default': f'{ample.reserved:,} MiB',
                          'device has': f'{most:,} MiB', 'default there': 'fails' if native.failures else 'ends',
                          'policy:ashlar there': f'{ours.reserved:,} MiB reserved, {ours.retries} retries'})
    return verdict


def advised(bench):
    verdict = Verdict()
    program = [os.path.join(PROGRAMS, 'benched.py'), 'llama_checkpointing']
    ample = run(bench, program, AMPLE_MIB)
    total = CONTEXT_MIB + int(ADVISED_SHARE * ample.held)
    native = run(bench, program, total, more=['--recorded'])
    verdict.equal('failures of the default', native.failures, 1)
    answer = explained(bench, native.history)
    verdict.equal('what is to be pasted', answer['paste'], None)
    line = (answer['own_allocator'] or {}).get('run')
    verdict.equal('what is to be run', line, 'ASHLAR_CONF=policy:ashlar python -m ashlar_gpu.torch YOUR_PROGRAM.py')
    ours = run(bench, program, total, ours=True)
    verdict.equal('failures as advised', ours.failures, 0)
    verdict.cells.update({'holds': f'{ample.held:,} MiB', 'reserved by default': f'{ample.reserved:,} MiB',
                          'device has': f'{total - CONTEXT_MIB:,} MiB', 'default there': 'fails',
                          'policy:ashlar there': f'{ours.reserved:,} MiB reserved, {ours.retries} retries',
                          'explain offered': line or 'nothing'})
    return verdict


def rows():
    return [*(Row('policy', kind, 30, lambda bench, kind=kind: fits(bench, kind)) for kind in KINDS),
            Row('policy', 'llama_checkpointing, as advised', 40, advised)]
