"""What the twin foretells from one recorded history, against real runs under each setting: equal to the byte.

The history is recorded in ample room under the default settings. Some settings are tried in scarce room: half way from
what the program holds at its peak to what the allocator then reserves, where the cache is given back, collected,
or does not do.
"""
import programs
from bench import AMPLE, CONTEXT_BYTES
from catalog import PROGRAMS as CATALOG
from rows import Row, Verdict
from sizes import mib

AMPLE_BYTES = 80 << 30
GRAIN = 2 << 20
IN_AMPLE_ROOM = ['max_split_size_mb:20', 'max_split_size_mb:64', 'max_split_size_mb:512', 'roundup_power2_divisions:4',
                 'expandable_segments:True']
IN_SCARCE_ROOM = ['', 'expandable_segments:True', 'garbage_collection_threshold:0.6']


def base(bench, program):
    run = programs.reproducible(bench, program)
    if run.code != 0 or not run.histories:
        raise RuntimeError(f'{program.name} ended with {run.code}: {run.last_line}')
    return run


def outside_bytes(run):
    """What of the device is neither the context's nor the allocator's: other libraries', at the peak."""
    device = max((d for p in run.report['processes'] for d in p['books']['devices']), key=lambda d: d['peak_bytes'])
    return device['peak_bytes'] - device['context_bytes'] - run.torch()['peak_reserved_bytes']


def room(bench, program, is_scarce):
    """(bytes of the device, flags of dry-run)."""
    if not is_scarce:
        return AMPLE_BYTES, AMPLE
    run = base(bench, program)
    device = run.torch()
    held = (device['peak_allocated_bytes'] + device['peak_reserved_bytes']) // 2 + outside_bytes(run)
    total = CONTEXT_BYTES + -(-held // GRAIN) * GRAIN
    return total, ['--capacity', str(total), '--context', '500MiB']


def foretell(bench, program, conf, total):
    run = base(bench, program)
    flags = ['--cold', '--capacity', str(total), '--context', str(CONTEXT_BYTES + outside_bytes(run))]
    return bench.replay(run.histories[0], *flags, *(['--conf', conf] if conf else []))


def compare(twin, real, verdict):
    """Does it fail, else both peaks and the retries."""
    device = real.torch()
    fails = bool(device['ooms'])
    verdict.equal('whether the twin fails', twin['ooms'] > 0, fails)
    if fails:
        return 'fails'
    verdict.equal('exit code', real.code, 0)
    for mine, theirs in (('peak_reserved', 'peak_reserved_bytes'), ('peak_allocated', 'peak_allocated_bytes'),
                         ('retries', 'retries')):
        verdict.equal(f'{mine} of the twin', twin[mine], device[theirs])
    return mib(device['peak_reserved_bytes'])


def judge(bench, program, conf, is_scarce):
    verdict = Verdict()
    total, flags = room(bench, program, is_scarce)
    twin = foretell(bench, program, conf, total)
    real = programs.reproducible(bench, program, conf, flags)
    verdict.cells['room'] = mib(total) if is_scarce else '80 GiB'
    if real.torch() is None:
        verdict.failures.append(f'it ended with {real.code}: {real.last_line}')
        return verdict
    verdict.cells['really'] = compare(twin, real, verdict)
    verdict.cells['foretold'] = 'fails' if twin['ooms'] else mib(twin['peak_reserved'])
    verdict.cells['retries'] = str(real.torch()['retries'])
    return verdict


def rows():
    out = []
    for program in (p for p in CATALOG if p.what_if):
        for is_scarce, settings in ((False, IN_AMPLE_ROOM), (True, IN_SCARCE_ROOM)):
            for conf in settings:
                name = f'{program.name}, {conf or "default"}{", scarce room" if is_scarce else ""}'
                out.append(Row('what-if', name, program.seconds + 2,
                               lambda bench, p=program, c=conf, s=is_scarce: judge(bench, p, c, s)))
    return out
