"""Sleep and wake with PyTorch: its tensors, pools and graphs, and steps of PPO by the ways of docs/examples/sleep/phases.py.

    tools/test real --only sleep
"""
import os
import re

import venvs
from bench import PROGRAMS
from plugin import environment
from rows import Row, Verdict
from sizes import mib, seconds

ROOT = os.path.dirname(os.path.dirname(PROGRAMS))
EXAMPLE = os.path.join(ROOT, 'docs', 'examples', 'sleep', 'phases.py')
PAGE = os.path.join(ROOT, 'docs', 'library', 'sleep.md')
ROOM = ['--capacity', '1GiB', '--context', '500MiB']
MIB = 1 << 20
PAGED = ('expandable_segments:True', 'policy:ashlar')  # under these memory without a tag can sleep as well
OF_CUDA_MALLOC = ('{} cannot sleep: {}.00 MiB of it are of cudaMalloc, whose addresses go with the memory: tag the pool before '
                  'it has any, or use expandable_segments:True or policy:ashlar')
KEPT = {'awake': [80, 80, 80], 'returned': 60, 'asleep': [20, 80, 20], 'names': [], 'is asleep': [True, True, False],
        'woken': [80, 80, 80], 'files after': [], 'in place': True, 'is asleep after': [False, False], 'files': []}


def scenes_of(conf):
    """Scene -> what must be seen: numbers are MiB, [reserved, allocated, held of the device]. `base` has 20 in every scene."""
    paged = conf in PAGED
    asleep = 'Allocate: pool {} "cache" is asleep: call Wake first'
    refused = (lambda pool, size: ['nothing']) if paged else lambda *of: ['Error', OF_CUDA_MALLOC.format(*of)]
    captured = '{} would wait for the device while a graph is being captured: call it after EndPool'
    return {
        'keep_host': KEPT,
        'keep_file': {**KEPT, 'files': [60]},
        'keep_nothing': KEPT,
        'keep_host_up_to_a_limit': {**KEPT, 'files': [50]},
        'freed_asleep': {'one freed': [20, 80, 20], 'emptied': [20, 80, 20], 'woken': [80, 80, 80], 'in place': True,
                         'all freed': [20, 20, 20], 'woken again': [20, 20, 20]},
        'asked_asleep': {'allocate': ['RuntimeError', asleep], 'small': ['RuntimeError', asleep], 'within another pool': 20,
                         'record_stream': ['RuntimeError',
                                           'ashlar_record_stream: the block\'s pool is asleep: call ashlar_wake first'],
                         'without a tag': 20, 'figures': [60, 60, 60], 'after the wake': 20,
                         'no such tag': ['Error', 'no pool has the tag "nobody": tag one first']},
        'no_memory_to_wake': {'asleep before': [20, 200, 20], 'stays as it is': True, 'asleep': [True, True],
                              'still refused': 'OutOfMemoryError', 'woken': [[200, 200, 200], True]},
        'by_tag': {'tagged': [60, 20], 'returned': 60, 'asleep': [True, False, True], 'tagged asleep': [60, 20],
                   'snapshot': 100, 'both': [20, 100, 20], 'second woken': [True, False, True],
                   'all woken': [False, False, False]},
        'everything': {'refusal': refused('the default pool', 20), 'asleep': [paged, paged],
                       'figures': [0, 60, 0] if paged else [60, 60, 60], 'woken': [False, False]},
        'own_pool': {'refusal': refused('pool {}', 40), 'asleep': paged, 'woken': [60, 60, 60]},
        'within_a_capture': {'sleep': ['Error', captured.format('Sleep')], 'wake': ['Error', captured.format('Wake')],
                             'asleep': [False, False]},
        'after_a_graph': {'returned': 20, 'as it was': True, 'its pool': refused('pool {}', 20), 'asleep': [paged, paged],
                          'as it was after that': True},
        'registered': {'returned': 0, 'returned after that': 40,
                       'told': ['ashlar: sleep: pools of 40 MiB stay awake, since ranges of them are registered, or '
                                'another process has a tensor of them: ashlar_gpu.torch.held() names them']},
        'many_times': {'as before': [True, True, 2]},
        'a_graph_in_a_tagged_pool': {'refusal': ['RuntimeError', 'pool {}: a graph is captured in a pool without a tag: what '
                                                 'is free in a tagged one goes back to the device']},
    }


def without_ids(answer):
    """A pool's id is a number that PyTorch counts."""
    if isinstance(answer, list):
        return [without_ids(one) for one in answer]
    return re.sub(r'pool \{\d+, \d+\}', 'pool {}', answer) if isinstance(answer, str) else answer


def torch_sleep(bench, conf, interface):
    done = bench.dry_run(venvs.python_of('torch-2.14.1'), ['torch_sleep.py'], ROOM,
                         {**environment(bench, interface), 'ASHLAR_CONF': conf}, cwd=PROGRAMS, keeps=False)
    verdict, wanted = Verdict(), scenes_of(conf)
    verdict.expect(done.code == 0 and done.told, f'it ended with {done.code}: {done.last_line}')
    if verdict.failures:
        return verdict
    told, seen = done.told[0], done.told[0]['seen']
    verdict.equal('interface', told['interface'], interface)
    verdict.equal('scenes', sorted(seen), sorted(wanted))
    refusal = seen['no_memory_to_wake'].pop('refusal')
    verdict.equal('no_memory_to_wake: error', refusal[0], 'OutOfMemoryError')
    verdict.expect(refusal[1].startswith('Wake: what sleeps is kept: out of memory: 180.00 MiB requested'), refusal[1])
    for scene, answers in wanted.items():
        got = {key: without_ids(answer) for key, answer in seen.get(scene, {}).items()}
        for key, answer in {**answers, 'left': [20, 20, 20]}.items():
            verdict.equal(f'{scene}: {key}', got.pop(key, None), answer)
        verdict.equal(f'{scene}: what else was told', got, {})
    books = done.report['processes'][0]['books']
    verdict.equal('most in memory of the host, MiB', books['pinned_peak_bytes'] // MIB, 180)  # what failed to wake
    verdict.cells.update({'scenes': len(seen), 'reserved': mib(told['peak_reserved']), 'time': seconds(done.seconds)})
    return verdict


WAYS = {'stays': 'everything stays', 'empty_cache': 'the cache of keys', 'sleep': 'cache, reference'}  # way -> its row


def figures_of_page():
    """way -> [GiB needed, GiB over the context], as docs/library/sleep.md has them."""
    with open(PAGE, encoding='utf-8') as page:
        lines = page.read().splitlines()
    out = {}
    for way, begins in WAYS.items():
        [line] = [line for line in lines if line.startswith(f'| {begins}')]
        out[way] = re.findall(r'(\d+\.\d\d) GiB', line)
    return out


def phases(bench):
    """The same loop by its three ways: the peaks of the device and of PyTorch."""
    verdict, peaks = Verdict(), {}
    for way in WAYS:
        done = bench.dry_run(venvs.python_of('torch-2.14.1'), [EXAMPLE, way], ['--device', 'A100-80GB'],
                             environment(bench, 'native'), cwd=PROGRAMS, keeps=False, most_seconds=600)
        verdict.expect(done.code == 0, f'{way} ended with {done.code}: {done.last_line}')
        if verdict.failures:
            return verdict
        peaks[way] = [done.report['peak_bytes'], done.torch()['peak_reserved_bytes']]
        verdict.expect(f'{way}: {peaks[way][1] / 2**30:.2f} GiB needed' in done.words + done.out, f'{way} tells another peak')
        verdict.cells[way] = mib(peaks[way][0])
    verdict.expect(peaks['sleep'] < peaks['empty_cache'] < peaks['stays'], f'peaks: {peaks}')
    page = {way: [f'{peak / 2**30:.2f}' for peak in both] for way, both in peaks.items()}
    verdict.equal('the table of docs/library/sleep.md', figures_of_page(), page)
    return verdict


def rows():
    out = [Row('sleep', ' '.join(filter(None, ('torch_sleep', conf, 'as a plug-in' * (interface == 'pluggable')))), 30,
               lambda bench, conf=conf, interface=interface: torch_sleep(bench, conf, interface))
           for conf, interface in (('', 'native'), *((conf, 'native') for conf in PAGED), ('', 'pluggable'))]
    return out + [Row('sleep', 'phases.py', 120, phases)]
