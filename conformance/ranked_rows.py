"""One rank of many, run alone, against the same rank among processes of all the others.

    conformance/run.py --ashlar build/release/bin/ashlar --only ranks

Each program (conformance/programs/ranked.py) runs twice over the hollow device: by torchrun as N processes on N devices, and by
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
BIG = {'fsdp': 64, 'tp_pp': 64}  # way of llama70b_ranks.py -> ranks
MOST_SECONDS_A_ROLE = 60
USUAL = 'torch-2.14.1'


def peaks_of(process):
    return (max(device['peak_bytes'] for device in process['books']['devices']),
            max(device['peak_allocated_bytes'] for device in process['torch']['devices']))


def alike(bench, way, world):
    verdict = Verdict()
    python, script = venvs.python_of(USUAL), os.path.join(PROGRAMS, 'ranked.py')
    real = bench.dry_run(python, torchrun(world) + [script, way], FLAGS + ['--devices', str(world)])
    alone = bench.dry_run(python, [script, way], FLAGS + ['--ranks', str(world), '--roles', 'all'])
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


def large(bench, way, world):
    verdict = Verdict()
    run = bench.dry_run(venvs.python_of(USUAL), [os.path.join(PROGRAMS, 'llama70b_ranks.py'), way],
                        ['--device', 'H100-80GB', '--ranks', str(world), '--names', 'off'], most_seconds=900)
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
    return ([Row('ranks', f'{way} {world}', 20 + 12 * world, lambda bench, of=(way, world): alike(bench, *of))
             for way in WAYS for world in WORLDS] +
            [Row('ranks', f'70b {way}', 120, lambda bench, of=(way, world): large(bench, *of), is_alone=True)
             for way, world in BIG.items()])
