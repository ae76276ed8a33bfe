"""What real PyTorch recorded over a prototype of the hollow device, and what it records over this one, event by event.

The recordings and the script that made them lie in the folder captures/ of ASHLAR_SHARED_DIR; its README.md has the
settings of each. Addresses are compared relative to the first segment.
"""
import os
import re

import fidelity
import histories
import venvs
from rows import Row, Skip, Verdict
from sizes import mib

CONTEXT = '500MiB'
SIDE_STREAMS = ['--lag', 'queries:6']
CASES = {  # case -> (the script's first argument, capacity in GiB, setting, flags)
    'default': ('train', 80, '', []),
    'train': ('train', 80, '', []),
    'default_oom': ('train', 16, '', []),
    'split128_oom': ('train', 16, 'max_split_size_mb:128', []),
    'split512': ('train', 20, 'max_split_size_mb:512', []),
    'expandable': ('train', 16, 'expandable_segments:True', []),
    'gc': ('train', 24, 'garbage_collection_threshold:0.6', []),
    'gcsplit': ('train', 24, 'garbage_collection_threshold:0.6,max_split_size_mb:256', []),
    'roundup': ('train', 24, 'roundup_power2_divisions:4', []),
    'streams': ('streams', 16, '', SIDE_STREAMS),
    'streams_exp': ('streams', 16, 'expandable_segments:True', SIDE_STREAMS),
    'pool': ('pool', 16, '', []),
    'empty': ('empty', 16, '', []),
    'empty_descending': ('empty', 80, '', []),
    'fraction': ('fraction', 24, '', []),
}
RECORDED = {
    '2.14.1': [case for case in CASES if case != 'train'],
    '2.6.0': ['default', 'default_oom', 'empty_descending', 'gcsplit', 'pool', 'split512', 'streams', 'streams_exp'],
    '2.12.0': ['empty_descending', 'pool', 'streams', 'train'],
    '2.13.0': ['empty_descending', 'streams', 'train'],
    '2.15.0': ['empty_descending', 'streams_exp'],
}
# One was recorded otherwise: its address ranges are 1.125 times 80 GiB, and its events are done at once.
OTHERWISE = {('2.15.0', 'streams_exp'): (80, [])}
# Of 2.14.1, in the folder's README: (peak allocated, peak reserved) in MiB, and how often the cache was given back.
PUBLISHED_PEAKS = {'default': (17331, 21070), 'roundup': (None, 21058)}
PUBLISHED_RETRIES = {'split512': 1}
OF_NVML = r'Including non-PyTorch memory, this process has \S+ \S+ memory in use\. '
FAILING = ('default_oom', 'split128_oom', 'expandable', 'fraction')


def folder(bench):
    if not bench.shared or not os.path.exists(os.path.join(bench.shared, 'captures', 'train.py')):
        raise Skip('the recordings are not here: ASHLAR_SHARED_DIR names no folder with captures/')
    return os.path.join(bench.shared, 'captures')


def machine_of(release, case):
    """(capacity in GiB, flags)"""
    _, capacity, _, flags = CASES[case]
    return OTHERWISE.get((release, case), (capacity, flags))


def machine(release, case):
    """Flags of dry-run: a device without a name, whose addresses are as the case says."""
    conf, (capacity, flags) = CASES[case][2], machine_of(release, case)
    settings = ['--conf', conf] if conf else []
    addresses = 'descending' if 'descending' in case else 'ascending'
    return ['--capacity', f'{capacity}GiB', '--context', CONTEXT, '--segment-addresses', addresses] + flags + settings


def compare_texts(recorded, ours, verdict):
    """The words of the exception. Some were recorded without NVML, and have one sentence less."""
    if not os.path.exists(recorded):
        return
    with open(recorded, encoding='utf-8') as file:
        wanted = file.read()
    got = ''
    if os.path.exists(ours):
        with open(ours, encoding='utf-8') as file:
            got = file.read()
    if OF_NVML.split()[0] not in wanted:
        got = re.sub(OF_NVML, '', got)
    verdict.expect(got == wanted, f'the error reads "{got[:200]}" and not "{wanted[:200]}"')


def compare_published(case, run, verdict):
    device = run.torch()
    for what, wanted in zip(('allocated', 'reserved'), PUBLISHED_PEAKS.get(case, ())):
        if wanted is not None:
            verdict.equal(f'peak {what} in MiB', device[f'peak_{what}_bytes'] >> 20, wanted)
    if case in PUBLISHED_RETRIES:
        verdict.equal('retries', device['retries'], PUBLISHED_RETRIES[case])
    verdict.equal('whether it fails', device['ooms'] > 0, case in FAILING)


def compare(bench, release, case):
    shared = folder(bench)
    python = venvs.python_of(f'torch-{release}')
    ours = os.path.join(bench.new_folder('capture'), 'own.pickle')
    run = bench.dry_run(python, [os.path.join(shared, 'train.py'), CASES[case][0], ours], machine(release, case))
    verdict = Verdict()
    verdict.expect(run.code == 0 and os.path.exists(ours), f'it ended with {run.code}: {run.last_line}')
    if verdict.failures:
        return verdict
    record = os.path.join(shared, f'torch-{release}_{case}.pickle.gz')
    recorded = histories.load(record)
    got = histories.load(ours)
    difference = histories.first_difference(histories.events(got), histories.events(recorded))
    verdict.expect(difference is None, f'ours and the recording differ at {difference}')
    device = run.torch()
    verdict.equal('peak reserved', device['peak_reserved_bytes'], histories.peak_reserved(recorded))
    verdict.equal('failures', device['ooms'] > 0, histories.failures(recorded) > 0)
    if release == '2.14.1':
        compare_published(case, run, verdict)
    compare_texts(os.path.join(shared, f'torch-{release}_{case}.oom.txt'), ours + '.txt', verdict)
    for what, history in (('the recording', record), ('ours', ours)):
        replayed, is_all = fidelity.of(bench, history)
        verdict.expect(is_all, f'replayed of {what}: {replayed}')
    verdict.cells.update({
        'setting': CASES[case][2] or '–',
        'capacity': f'{machine_of(release, case)[0]} GiB',
        'allocated': mib(device['peak_allocated_bytes']),
        'reserved': mib(device['peak_reserved_bytes']),
        'retries': str(device['retries']),
        'failures': str(device['ooms']),
        'equal events': f'{len(histories.events(got)):,}',
        'replayed': replayed,
    })
    return verdict


def rows(releases):
    return [Row('captures', f'{release} {case}', 8, lambda bench, r=release, c=case: compare(bench, r, c),
                is_usual=release == '2.14.1') for release in releases for case in RECORDED.get(release, [])]
