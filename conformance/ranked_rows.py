"""One rank of many, run alone, against the same rank among processes of all the others.

    conformance/run.py --ashlar build/release/bin/ashlar --only ranks

Each program (conformance/programs/ranked.py, moe_ranks.py) runs twice over the hollow device: by torchrun as N processes on N devices, and by
`--ranks N --roles all`, each rank in its turn. The peaks of each rank are equal to the byte: of its device, and of
PyTorch's allocated memory. With `--lag until-waited` work is done when the host waits for it, so that what the host finds
done does not go by how soon other processes call.
"""
import os

import venvs
from bench import AMPLE, PROGRAMS
from catalog import torchrun
from rows import Row, Verdict
from sizes import mib

WAYS = ('ddp', 'fsdp1', 'fsdp2', 'tp', 'pp', 'ep')
WORLDS = (2, 4, 8)
FLAGS = AMPLE + ['--names', 'off', '--lag', 'until-waited']
SMALL = [(way, ['ranked.py', way], []) for way in WAYS] + [
    (f'ep_fsdp2 {rule}', ['moe_ranks.py', 'small'], ['--routing', rule]) for rule in ('balanced', 'random:7')]
BIG = [('fsdp', ['llama70b_ranks.py', 'fsdp'], []), ('tp_pp', ['llama70b_ranks.py', 'tp_pp'], []),
       ('ep_fsdp2', ['moe_ranks.py', '70b'], ['--routing', 'balanced'])]
BIG_WORLD = 64
MOST_SECONDS_A_ROLE = 60
USUAL = 'torch-2.14.1'


def peaks_of(process):
    return (max(device['peak_bytes'] for device in process['books']['devices']),
            max(device['peak_allocated_bytes'] for device in process['torch']['devices']))


def of_programs(program):
    return [os.path.join(PROGRAMS, program[0])] + program[1:]


def alike(bench, program, flags, world):
    verdict = Verdict()
    python, script, flags = venvs.python_of(USUAL), of_programs(program), FLAGS + flags
    real = bench.dry_run(python, torchrun(world) + script, flags + ['--devices', str(world)])
    alone = bench.dry_run(python, script, flags + ['--ranks', str(world), '--roles', 'all'])
    for run in (real, alone):
        verdict.expect(run.code == 0, f'ended with {run.code}: {run.last_line}')
    if verdict.failures:
        return verdict
    among = {one['rank']: peaks_of(one) for one in real.report['processes'] if one['rank'] is not None and one['torch']}
    by_itself = {role['rank']: (role['peak_bytes'], role['peak_allocated_bytes']) for role in alone.report['ranks']['roles']}
    verdict.equal('ranks', sorted(by_itself), list(range(world)))
    for rank in range(world):
        verdict.equal(f'rank {rank}', by_itself.get(rank), among.get(rank))
    verdict.cells.update({'ranks': str(world), 'most': mib(max(peak for peak, _ in by_itself.values())),
                          'equal': f'{sum(by_itself.get(rank) == among.get(rank) for rank in range(world))} of {world}'})
    return verdict


def large(bench, program, flags, world=BIG_WORLD):
    verdict = Verdict()
    run = bench.dry_run(venvs.python_of(USUAL), of_programs(program),
                        ['--device', 'H100-80GB', '--ranks', str(world), '--names', 'off'] + flags, most_seconds=900)
    verdict.expect(run.code == 0, f'ended with {run.code}: {run.last_line}')
    if verdict.failures:
        return verdict
    ranks = run.report['ranks']
    stood_for = sorted(rank for role in ranks['roles'] for rank in role['stands_for'])
    verdict.equal('ranks stood for', stood_for, list(range(world)))
    verdict.expect(run.report['fits'] is True, 'it does not fit')
    seconds = run.seconds / len(ranks['roles'])
    verdict.expect(seconds <= MOST_SECONDS_A_ROLE, f'{seconds:.0f} s a role')
    verdict.cells.update({'ranks': str(world), 'roles': str(len(ranks['roles'])), 'seconds a role': f'{seconds:.0f}',
                          'most': mib(run.report['peak_bytes'])})
    return verdict


def rows():
    return ([Row('ranks', f'{way} {world}', 20 + 12 * world, lambda bench, of=(program, flags, world): alike(bench, *of))
             for way, program, flags in SMALL for world in WORLDS] +
            [Row('ranks', f'70b {way}', 120, lambda bench, of=(program, flags): large(bench, *of), is_alone=True)
             for way, program, flags in BIG])
