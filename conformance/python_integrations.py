"""Integrations of Python: one program under its library's own memory manager and under Ashlar's, and several in one process."""
import os
import re

import venvs
from bench import PROGRAMS
from rows import Row, Verdict
from sizes import mib

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(PROGRAMS)), 'python')
JAX = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false', 'XLA_CLIENT_MEM_FRACTION': '0.4',
       'XLA_PYTHON_CLIENT_ALLOCATOR': 'platform'}
CALLS = ('allocate', 'free', 'allocate_async', 'free_async', 'create', 'release')
WITHOUT_RECORDER = ('bash', '-c', 'LD_PRELOAD=$(tr : "\\n" <<<"$LD_PRELOAD" | grep hollow) exec "$@"', 'bash')
NUMBA_TESTS = 'numba.cuda.tests.cudadrv.test_'
NUMBA_PARTS = ('cuda_memory', 'cuda_ndarray', 'host_alloc', 'pinned', 'cuda_array_slicing', 'managed_alloc',
               'context_stack', 'reset_device', 'select_device', 'streams')
ROOM = ['--capacity', '16GiB', '--context', '500MiB']


def environment_of(bench):
    return {'PYTHONPATH': os.path.abspath(PACKAGE), 'ASHLAR_PREFIX': os.path.dirname(os.path.dirname(bench.ashlar))}


def told_by(bench, environment, script, more, flags, prefix=()):
    program = [*prefix, venvs.python_of(environment), script]
    done = bench.dry_run(program[0], program[1:], ROOM + flags, {**environment_of(bench), **more}, most_seconds=120,
                         cwd=PROGRAMS, keeps=False)
    if done.code != 0 or len(done.told) != 1:
        raise RuntimeError(f'{script} ended with {done.code}: {done.last_line}')
    return done.told[0]


def run(bench, environment, script, more, flags=()):
    """What the program told, and the calls of the device."""
    calls = os.path.join(bench.new_folder('calls'), 'calls')
    return told_by(bench, environment, script, more, ['--calls', calls, *flags]), device_calls(calls)


def nanoseconds(bench, environment, script, more):
    """Without the recorder and the log, which cost more than a call of the hollow device."""
    return told_by(bench, environment, script, more, [], WITHOUT_RECORDER)['ns_of_a_pair']


def device_calls(path):
    """Of the hollow device's own log: the calls that gave or took memory, refused ones not counted."""
    with open(path, encoding='utf-8') as lines:
        rows = [line.split() for line in lines]
    return sum(row[0] in CALLS and row[-1] == '0' for row in rows)


def compare(bench, environment, script, own, ours, failure):
    """Same results; the device is asked far less; the accounting is even at the end."""
    verdict = Verdict()
    (native, calls_before), (served, calls_after) = (run(bench, environment, script, more) for more in (own, ours))
    verdict.equal('results', served['seen'], native['seen'])
    verdict.expect('statistics' in served, 'our allocator was not used')
    verdict.equal('failure', served['failure'], failure)
    books = served.get('statistics') or {'allocated_bytes': -1, 'allocations': 0, 'frees': 0, 'device_allocations': 0}
    verdict.equal('bytes left', books['allocated_bytes'], 0)
    verdict.equal('frees', books['frees'], books['allocations'])
    verdict.expect(0 < calls_after < calls_before / 10, f'device calls: {calls_after} and not a tenth of {calls_before}')
    verdict.equal('device calls, in the accounting', books['device_allocations'] + books['device_frees'], calls_after)
    verdict.cells = {'client': served['version'], 'requests': books['allocations'], 'device calls, its own': calls_before,
                     'ours': calls_after, 'ns of allocate and free, its own': nanoseconds(bench, environment, script, own),
                     'ns, ours': nanoseconds(bench, environment, script, ours)}
    return verdict


def numba(bench, built_in):
    base = {'BUILT_IN': built_in}
    return compare(bench, 'numba', 'integration_numba.py', base, {**base, 'NUMBA_CUDA_MEMORY_MANAGER': 'ashlar_gpu.numba'}, 2)


def outcomes(bench, manager):
    """Test -> its outcome, of numba-cuda's own tests."""
    done = bench.dry_run(venvs.python_of('numba-tests'), ['-m', 'numba.runtests', '-v'] + [NUMBA_TESTS + n for n in NUMBA_PARTS],
                         ROOM, {**environment_of(bench), 'NUMBA_CUDA_MEMORY_MANAGER': manager}, most_seconds=280, keeps=False)
    return dict(re.findall(r'^(test_\S+ \(\S+\))(?:.*\n)??.*? \.\.\. (ok|FAIL|ERROR|skipped)', done.words, re.M))


def numba_s_own_tests(bench):
    """Those of memory. Some need what a kernel computes and fail over a hollow device; the same ones under both managers."""
    verdict, native, served = Verdict(), outcomes(bench, 'default'), outcomes(bench, 'ashlar_gpu.numba')
    passed = sum(outcome == 'ok' for outcome in served.values())
    verdict.expect(passed > 90, f'{passed} of {len(served)} tests passed')
    for name in sorted(native.keys() | served.keys()):
        verdict.equal(name, served.get(name), native.get(name))
    verdict.cells = {'client': 'numba-cuda', 'its own tests': len(served), 'passed under both': passed}
    return verdict


def cuda_core(bench, environment):
    return compare(bench, environment, 'integration_cuda_core.py', {}, {'INTEGRATION': 'ashlar'}, 'MemoryError')


def cupy(bench, environment, ways):
    """`ways`: those of the release; the first is what install chooses."""
    verdict, told = Verdict(), run(bench, environment, 'integration_cupy.py', {})[0]
    verdict.equal('ways', told['ways'], ways)
    verdict.equal('chosen', told['kind'], 'CFunctionAllocator' if ways[0] == 'c' else 'PythonFunctionAllocator')
    verdict.equal('C functions', told['refusal'], 'none' if 'c' in ways else 'ImportError')
    verdict.expect(told['found'], 'CuPy does not export its current stream any more')
    for name in told['ways']:
        way = told[name]
        verdict.equal(f'{name}: bytes held, kept, left', [way[key] for key in ('held', 'kept', 'left')], [3 << 20, 3 << 20, 0])
        verdict.expect(way['is_reused'] and way['is_other'], f'{name}: blocks do not keep to their streams')
        verdict.expect(way['failure'][1], f'{name}: out of memory raises {way["failure"]}')
        verdict.equal(f'{name}: the per-thread stream', way['per_thread'][0], {'c': 'ValueError', 'python': 'Error'}[name])
        verdict.expect('7' in way['no_device'][2], f'{name}: a device that is not there: {way["no_device"]}')
        verdict.cells[{'c': 'ns, C functions', 'python': 'ns, Python functions'}[name]] = way['ns_of_a_pair']
    verdict.cells['client'] = told['version']
    return verdict


def one_pool(bench):
    """Once with a device that is done at once, and once with one whose work takes time."""
    verdict = Verdict()
    for flags, waits in (([], False), (['--lag', 'queries:40'], True)):
        told, calls = run(bench, 'one-pool', 'integration_one_pool.py', {}, flags)
        for what, (got, wanted) in told['held'].items():
            verdict.equal(' '.join([what, *flags]), got, wanted)
        verdict.equal(' '.join(['waits for another stream', *flags]), told['waits'], waits)
        verdict.equal('device calls, in the accounting', told['device_calls'], calls)
        verdict.expect(len(told['integrations']) >= 4, f'integrations: {told["integrations"]}')
    verdict.cells = {'client': ', '.join(told['integrations']), 'requests': told['requests'],
                     'ours': calls, 'held at once': mib(told['at_once'])}
    return verdict


def jax(bench):
    """JAX has no plug point: only that it reads the settings which its documents name. Its device does not start here."""
    verdict, told = Verdict(), told_by(bench, 'jax', 'integration_jax.py', JAX, [])
    verdict.equal('options', told['options'], {'allocator': 'platform', 'memory_fraction': 0.4, 'preallocate': False})
    verdict.cells = {'client': told['version']}
    return verdict


def rows():
    named = [('numba-cuda', lambda bench: numba(bench, '0')), ('numba.cuda of numba itself', lambda bench: numba(bench, '1')),
             ('numba\'s own tests', numba_s_own_tests),
             ('CuPy\'s classes of memory', lambda bench: cupy(bench, 'cupy', ['c', 'python'])),
             ('CuPy 13\'s classes of memory', lambda bench: cupy(bench, 'cupy-13.6.0', ['python'])),
             ('one pool for several', one_pool),
             ('JAX\'s settings', jax)]
    named += [(name.replace('cuda-core', 'cuda.core'), lambda bench, name=name: cuda_core(bench, name))
              for name in ('cuda-core', 'cuda-core-0.3.2', 'cuda-core-0.7.0', 'cuda-core-1.0.1')]
    return [Row('python_integrations', name, 20, measure, is_usual=False) for name, measure in named]
