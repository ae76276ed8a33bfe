"""Doors of Python: one program under its library's own memory manager and under Ashlar's, and several in one process."""
import os

import venvs
from bench import PROGRAMS
from rows import Row, Verdict
from sizes import mib

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(PROGRAMS)), os.pardir, 'python')
CALLS = ('allocate', 'free', 'allocate_async', 'free_async', 'create', 'release')
ROOM = ['--capacity', '16GiB', '--context', '500MiB']


def environment_of(bench):
    return {'PYTHONPATH': os.path.abspath(PACKAGE), 'ASHLAR_PREFIX': os.path.dirname(os.path.dirname(bench.ashlar))}


def run(bench, environment, script, more, flags=()):
    calls = os.path.join(bench.new_folder('calls'), 'calls')
    done = bench.dry_run(venvs.python_of(environment), [script], ROOM + ['--calls', calls, *flags],
                        {**environment_of(bench), **more}, most_seconds=120, cwd=PROGRAMS, keeps=False)
    if done.code != 0 or len(done.told) != 1:
        raise RuntimeError(f'{script} ended with {done.code}: {done.last_line}')
    return done, device_calls(calls)


def device_calls(path):
    """Of the hollow device's own log: the calls that gave or took memory, refused ones not counted."""
    with open(path, encoding='utf-8') as lines:
        rows = [line.split() for line in lines]
    return sum(row[0] in CALLS and row[-1] == '0' for row in rows)


def compare(bench, environment, script, own, ours, failure):
    """Same results; the device is asked far less; the books are even at the end."""
    verdict = Verdict()
    (before, calls_before), (after, calls_after) = (run(bench, environment, script, more) for more in (own, ours))
    native, served = before.told[0], after.told[0]
    verdict.equal('results', served['seen'], native['seen'])
    verdict.expect('statistics' in served, 'our allocator was not used')
    verdict.equal('failure', served['failure'], failure)
    books = served.get('statistics') or {'allocated_bytes': -1, 'allocations': 0, 'frees': 0, 'device_allocations': 0}
    verdict.equal('bytes left', books['allocated_bytes'], 0)
    verdict.equal('frees', books['frees'], books['allocations'])
    verdict.expect(0 < calls_after < calls_before / 10, f'device calls: {calls_after} and not a tenth of {calls_before}')
    verdict.equal('device calls, in the books', books['device_allocations'] + books['device_frees'], calls_after)
    verdict.cells = {'client': served['version'], 'requests': books['allocations'], 'device calls, its own': calls_before,
                     'ours': calls_after, 'ns of allocate and free, its own': native['ns_of_a_pair'],
                     'ns, ours': served['ns_of_a_pair']}
    return verdict


def numba(bench, built_in):
    base = {'BUILT_IN': built_in}
    return compare(bench, 'numba', 'door_numba.py', base, {**base, 'NUMBA_CUDA_MEMORY_MANAGER': 'ashlar_gpu.numba'}, 2)


def cuda_core(bench, environment):
    return compare(bench, environment, 'door_cuda_core.py', {}, {'DOOR': 'ashlar'}, 'MemoryError')


def cupy(bench):
    verdict, told = Verdict(), run(bench, 'cupy', 'door_cupy.py', {})[0].told[0]
    verdict.equal('allocators', told['kinds'], ['CFunctionAllocator', 'PythonFunctionAllocator'])
    verdict.expect(told['found'], 'CuPy does not export its current stream any more')
    for name, refused in (('c', 'ValueError'), ('python', 'Error')):
        way = told[name]
        verdict.equal(f'{name}: bytes held, kept, left', [way[key] for key in ('held', 'kept', 'left')], [3 << 20, 3 << 20, 0])
        verdict.expect(way['is_reused'] and way['is_other'], f'{name}: blocks do not keep to their streams')
        verdict.expect(way['failure'][1], f'{name}: out of memory raises {way["failure"]}')
        verdict.equal(f'{name}: the per-thread stream', way['per_thread'][0], refused)
        verdict.expect('7' in way['no_device'][2], f'{name}: a device that is not there: {way["no_device"]}')
    verdict.cells = {'client': told['version'], 'ns, C functions': told['c']['ns_of_a_pair'],
                     'ns, Python functions': told['python']['ns_of_a_pair']}
    return verdict


def one_pool(bench):
    """Once with a device that is done at once, and once with one whose work takes time."""
    verdict = Verdict()
    for flags, waits in (([], False), (['--lag', 'queries:40'], True)):
        done, calls = run(bench, 'one-pool', 'door_one_pool.py', {}, flags)
        told = done.told[0]
        for what, (got, wanted) in told['held'].items():
            verdict.equal(' '.join([what, *flags]), got, wanted)
        verdict.equal(' '.join(['waits for another stream', *flags]), told['waits'], waits)
        verdict.equal('device calls, in the books', told['device_calls'], calls)
        verdict.expect(len(told['doors']) >= 4, f'doors: {told["doors"]}')
    verdict.cells = {'client': ', '.join(told['doors']), 'requests': told['requests'],
                     'ours': calls, 'held at once': mib(told['at_once'])}
    return verdict


def rows():
    named = [('numba-cuda', lambda bench: numba(bench, '0')), ('numba.cuda of numba itself', lambda bench: numba(bench, '1')),
             ('CuPy\'s classes of memory', cupy), ('one pool for several', one_pool)]
    named += [(name.replace('cuda-core', 'cuda.core'), lambda bench, name=name: cuda_core(bench, name))
              for name in ('cuda-core', 'cuda-core-0.3.2', 'cuda-core-0.7.0', 'cuda-core-1.0.1')]
    return [Row('pydoors', name, 20, measure, is_usual=False) for name, measure in named]
