"""Histories without an edit to the program: record, signals, errors out of memory, and failures that are made.

record is for a machine with a GPU. Here its program gets the hollow device by hand, as dry-run gives it.
"""
import glob
import os
import signal
import time

import histories
import venvs
from bench import AMPLE, PROGRAMS, start
from programs import HOME
from rows import Row, Verdict

ROOM = ['--capacity', '4GiB', '--context', '500MiB']


def hollow_by_hand(bench, python, program):
    """A command line that runs the program over a device of 80 GiB, whoever starts it."""
    build = os.path.join(os.path.dirname(os.path.dirname(bench.ashlar)), 'hollow')
    run = bench.new_folder('hollow')
    with open(os.path.join(run, 'machine'), 'w', encoding='utf-8') as out:
        out.write(f'total_bytes={80 << 30}\ncontext_bytes={500 << 20}\naddresses=driver\n')
    return ['/usr/bin/env', f'ASHLAR_HOLLOW_RUN={run}', f'LD_PRELOAD={build}/libashlar_hollow.so',
            f'LD_LIBRARY_PATH={build}/shims', f'TRITON_LIBCUDA_PATH={build}/shims', python] + program


def record(bench):
    python, verdict = venvs.python_of(HOME), Verdict()
    kept = os.path.join(bench.new_folder('record'), 'own.pickle')
    program = [os.path.join(PROGRAMS, 'graphs.py')]
    run = start([bench.ashlar, 'record', '-o', kept, '--'] + hollow_by_hand(bench, python, program))
    verdict.equal('exit code', run.code, 0)
    verdict.expect(os.path.exists(kept), f'no history: {run.last_line}')
    if verdict.failures:
        return verdict
    dry = bench.dry_run(python, program, AMPLE)
    left, right = (histories.events(histories.load(path)) for path in (kept, dry.histories[0]))
    difference = histories.first_difference(left, right)
    verdict.expect(difference is None, f'record and dry-run: {difference}')
    verdict.cells['seen'] = f'a history of {len(left):,} events, equal to that of dry-run'
    return verdict


def send(number, ready):
    def during(pid):
        while not os.path.exists(ready):
            time.sleep(0.05)
        os.kill(pid, number)

    return during


def waits(bench, number):
    ready = os.path.join(bench.new_folder('ready'), 'ready')
    return bench.dry_run(venvs.python_of(HOME), ['waits.py', ready], AMPLE, cwd=PROGRAMS, during=send(number, ready))


def allocations(run):
    return sum(event[0] == 'alloc' for event in histories.events(histories.load(run.histories[0])))


def on_sigusr1(bench):
    """The program goes on once it sees the file, and is whole at its end."""
    run, verdict = waits(bench, signal.SIGUSR1), Verdict()
    verdict.equal('exit code', run.code, 0)
    verdict.equal('blocks of the program', [line['kept'] for line in run.told], [9])
    verdict.expect(run.seconds < 50, 'the program waited in vain')
    verdict.expect(run.histories and allocations(run) == 9, 'the last history lacks what came after the signal')
    verdict.cells['seen'] = 'a history while the program runs, and it goes on'
    return verdict


def on_sigterm(bench):
    run, verdict = waits(bench, signal.SIGTERM), Verdict()
    verdict.equal('exit code', run.code, 128 + signal.SIGTERM)
    verdict.expect(run.histories and allocations(run) == 8, f'no history of 8 allocations: {run.last_line}')
    verdict.cells['seen'] = 'the history to the signal; the program ends as it would have'
    return verdict


def out_of_memory(bench):
    """The dump holds what the failing function held: it was taken before the error unwound it."""
    run, verdict = bench.dry_run(venvs.python_of(HOME), ['unwinds.py'], ROOM, cwd=PROGRAMS), Verdict()
    verdict.equal('exit code', run.code, 0)
    verdict.equal('bytes left to the program', [line['left'] for line in run.told], [0])
    dumps = glob.glob(os.path.join(os.path.dirname(run.histories[0]), 'oom-*')) if run.histories else []
    verdict.equal('dumps', len(dumps), 1)
    if verdict.failures:
        return verdict
    snapshot = histories.load(dumps[0])
    live = sum(block['size'] for segment in snapshot['segments'] for block in segment['blocks']
               if block['state'] == 'active_allocated')
    verdict.equal('bytes live in the dump', live, 12 << 28)
    verdict.equal('the last event', histories.events(snapshot)[-1][0], 'oom')
    verdict.cells['seen'] = f'a dump with {live >> 20:,} MiB live; 0 after the error'
    return verdict


def fail_call(bench):
    """PyTorch gives its cache back after a call that failed, and tries again: once."""
    python, verdict = venvs.python_of(HOME), Verdict()
    plain = bench.dry_run(python, ['mempool.py'], AMPLE, cwd=PROGRAMS)
    run = bench.dry_run(python, ['mempool.py'], AMPLE + ['--fail-call', '4'], cwd=PROGRAMS)
    verdict.equal('exit code', run.code, 0)
    verdict.equal('retries without', plain.torch()['retries'], 0)
    verdict.equal('retries', run.torch()['retries'], 1)
    verdict.cells['seen'] = 'the fourth call for memory fails, PyTorch tries again'
    return verdict


def fail_after(bench):
    python, verdict = venvs.python_of(HOME), Verdict()
    run = bench.dry_run(python, ['oom.py'], AMPLE + ['--fail-after', '10GiB'], cwd=PROGRAMS)
    verdict.equal('exit code', run.code, 0)
    verdict.equal('failures', [line['failures'] for line in run.told], [3])
    held = run.report['peak_bytes']
    verdict.expect(10 << 30 <= held < 11 << 30, f'{held:,} bytes are held at most')
    verdict.cells['seen'] = f'no call succeeds once 10 GiB are held; {held / 2**30:.2f} GiB at most, with the context'
    return verdict


def other_allocators(bench):
    """What another allocator than PyTorch's own does not answer ends no program; the device's accounting are there."""
    python, verdict, asynchronous = venvs.python_of(HOME), Verdict(), ['--conf', 'backend:cudaMallocAsync']
    for name, flags, more in (('cudaMallocAsync', asynchronous, []), ('cudaMallocAsync', asynchronous, ['fails']),
                              ('pluggable', [], ['own'])):
        run = bench.dry_run(python, ['other_allocator.py', *more], ROOM + flags, cwd=PROGRAMS, keeps=False)
        verdict.equal(f'{name}, exit code', run.code, 0)
        verdict.equal(f'{name}, its blocks', [line['blocks'] for line in run.told], [10])
        told = [process['torch']['not_kept'] for process in run.report['processes'] if process['torch']]
        verdict.expect(told and 'does not yet support' in told[0], f'{name}: {told} of what is not kept')
        verdict.equal(f'{name}, fits', run.report['fits'], not more or more == ['own'])
        peak = run.report['peak_bytes'] - (500 << 20)
        verdict.expect(160 << 20 <= peak <= 192 << 20, f'{name}: {peak:,} bytes at most, without the context')
    kept = os.path.join(bench.new_folder('record'), 'none.pickle')
    program = hollow_by_hand(bench, python, [os.path.join(PROGRAMS, 'other_allocator.py')])
    environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF='backend:cudaMallocAsync')
    run = start([bench.ashlar, 'record', '-o', kept, '--'] + program, environment)
    verdict.equal('record, exit code', run.code, 0)
    verdict.cells['seen'] = 'cudaMallocAsync and functions of the program: it goes on, and a line says what is not kept'
    return verdict


TRIED = {'record': record, 'SIGUSR1': on_sigusr1, 'SIGTERM': on_sigterm, 'an error out of memory': out_of_memory,
         'other allocators': other_allocators, '--fail-call': fail_call, '--fail-after': fail_after}


def rows():
    return [Row('recording', name, 8, run) for name, run in TRIED.items()]
