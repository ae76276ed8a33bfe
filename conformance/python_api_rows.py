"""The package ashlar_gpu with its real clients: PyTorch that runs out of memory, Jupyter's kernel, pytest, mypy.

Programs and tests lie in python_api/; PyTorch runs over the hollow device, the package is that of this tree.
"""
import json
import os
import xml.etree.ElementTree as xml

import bench as bench_module
import venvs
from rows import Row, Skip, Verdict
from sizes import seconds

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, 'python_api')
PACKAGE = os.path.join(os.path.dirname(HERE), 'python')
SMALL = ['--capacity', '4GiB']


def python():
    return venvs.python_of('python-api')


def environment(bench, **more):
    prefix = os.path.dirname(os.path.dirname(bench.ashlar))
    return {'PYTHONPATH': PACKAGE, 'ASHLAR_PREFIX': prefix, 'PYTHONDONTWRITEBYTECODE': '1', **more}


def start(bench, words, most_seconds=bench_module.MOST_SECONDS, **more):
    return bench_module.start([python(), *words], environment(bench, **more), most_seconds, cwd=FOLDER)


def ends_with(verdict, words, headline, error='OutOfMemoryError'):
    """The traceback, and after it the explanation, once."""
    told = ' '.join(line.removeprefix('[rank1]:').strip() for line in words.splitlines())
    verdict.equal('explanations', told.count(headline), 1)
    verdict.expect(0 <= told.find(error) < told.find(headline), 'the explanation does not follow the error')


def on_oom(bench, how):
    """What it says is what the run's own report says, which has another snapshot of the same moment."""
    verdict = Verdict()
    run = bench.dry_run(python(), ['train_oom.py', how], SMALL, environment(bench), cwd=FOLDER, keeps=False)
    verdict.equal('exit code', run.code, 0 if how in ('caught', 'thread') else 1)
    explanation = run.report['explanation']
    ends_with(verdict, run.words, explanation['headline'], 'handled' if how == 'caught' else 'OutOfMemoryError')
    verdict.expect(f'VERDICT        {explanation["verdict"]}' in run.words, 'the verdict is not that of the report')
    verdict.cells.update({'says': explanation['verdict'], 'time': seconds(run.seconds)})
    return verdict


def on_oom_plugin(bench):
    """PyTorch on our allocator: its history has no stacks."""
    verdict = Verdict()
    if not os.path.exists(os.path.join(os.path.dirname(os.path.dirname(bench.ashlar)), 'lib', 'libashlar_torch.so')):
        raise Skip('libashlar_torch.so is not built')
    program = ['-m', 'ashlar_gpu.torch', 'train_oom.py', 'dies']
    run = bench.dry_run(python(), program, SMALL, environment(bench), cwd=FOLDER, keeps=False)
    ends_with(verdict, run.words, 'OUT OF MEMORY  device 0')
    verdict.expect('RESERVED WENT' in run.words, 'no accounting')
    verdict.cells.update({'says': run.report['explanation']['verdict'], 'time': seconds(run.seconds)})
    return verdict


def on_oom_ranks(bench):
    verdict = Verdict()
    program = ['-m', 'torch.distributed.run', '--nproc-per-node', '2', 'ranks_oom.py']
    run = bench.dry_run(python(), program, SMALL + ['--devices', '2'], environment(bench), cwd=FOLDER, keeps=False)
    ends_with(verdict, run.words, run.report['explanation']['headline'])
    verdict.expect('[rank1]: VERDICT' in run.words, 'the rank is not named before the verdict')
    verdict.expect('WHO HOLDS IT' not in run.words, 'a rank of several is not brief')
    verdict.cells.update({'says': run.report['explanation']['verdict'], 'time': seconds(run.seconds)})
    return verdict


def recorded(bench):
    verdict = Verdict()
    run = bench.dry_run(python(), ['record_block.py'], SMALL, environment(bench), cwd=FOLDER, keeps=False)
    verdict.equal('exit code', run.code, 0)
    told = next((json.loads(line) for line in run.words.splitlines() if line.startswith('{"well"')), {})
    verdict.equal('what was told', sorted(told), ['failed', 'peak', 'verdict', 'well'])
    verdict.equal('well, failed', (told.get('well'), told.get('failed')), ('healthy', run.report['explanation']['verdict']))
    verdict.equal('peak', told.get('peak'), 64 << 20)
    verdict.cells['time'] = seconds(run.seconds)
    return verdict


def notebook(bench, where):
    """A cell that fits, one that fails, and one after it that must not run."""
    verdict = Verdict()
    if where != 'without a GPU':
        run = bench.dry_run(python(), ['notebook.py', where], SMALL, environment(bench), cwd=FOLDER, keeps=False)
        words = run.words
    else:
        run = start(bench, ['notebook.py', where])
        words = run.out
    lines = [line for line in words.splitlines() if line.startswith('{"cells"')]
    verdict.equal('exit code', run.code, 0)
    verdict.expect(bool(lines), run.last_line)
    for name, held in (json.loads(lines[0])['cells'] if lines else {}).items():
        verdict.expect(held, name)
    verdict.cells['time'] = seconds(run.seconds)
    return verdict


# test -> what its failure's first line holds; '' for those that pass
OUTCOMES = {
    'test_a_step_fits[8]': '', 'test_a_step_fits[4096]': '', 'test_on_a_card_by_name': '', 'test_holds_little': '',
    'test_halves_its_batch': '', 'test_without_a_mark': '',
    'test_bad_does_not_fit[8192]': 'does not fit 256MiB: capacity',
    'test_bad_catches_what_does_not_fit': 'does not fit 256MiB: capacity',
    'test_bad_holds_much': 'max_reserved(64MiB): ',
    'test_bad_uses_no_device': 'used no device',
    'test_bad_nothing_fails': 'oom_at(50): nothing failed',
    'test_bad_by_itself': 'AssertionError',
}


def tests(bench, workers):
    verdict = Verdict()
    results = bench.path(f'results-{workers}.xml')
    words = ['-m', 'pytest', '-p', 'ashlar_gpu.pytest_plugin', '-p', 'no:cacheprovider', 'test_memory.py',
             f'--junit-xml={results}'] + (['-n', str(workers)] if workers else [])
    run = start(bench, words, 600)
    verdict.equal('exit code', run.code, 1)
    cases = {}
    for case in xml.parse(results).iter('testcase'):
        failed = case.find('failure')
        cases[case.get('name')] = '' if failed is None else failed.get('message') + (failed.text or '')
    verdict.equal('tests', sorted(cases), sorted(OUTCOMES))
    for name, wanted in OUTCOMES.items():
        said = cases.get(name, 'nothing')
        verdict.expect(wanted in said if wanted else said == '', f'{name}: {said[:200]!r}')
    for name in ('test_bad_does_not_fit[8192]', 'test_bad_catches_what_does_not_fit'):
        verdict.expect('WHERE 256.00 MiB WENT' in cases.get(name, ''), f'{name} has no accounting')
    verdict.cells.update({'tests': f'{len(cases)}', 'time': seconds(run.seconds)})
    return verdict


def called(bench):
    verdict = Verdict()
    run = start(bench, ['calls.py'])
    verdict.equal('exit code', run.code, 0)
    told = json.loads(run.out) if run.code == 0 else {}
    for name, held in told.items():
        verdict.expect(held, name)
    verdict.expect(bool(told), run.last_line)
    verdict.cells['time'] = seconds(run.seconds)
    return verdict


INTEGRATIONS = ('torch', '_torch', 'numba', '_numba', 'cuda_core', 'cupy', '_cupy', 'jax', 'allocator', '_library')  # to others


def types(bench, checker):
    """Of all but the integrations to libraries, which have types of their own or none."""
    verdict = Verdict()
    names = sorted(name for name in os.listdir(os.path.join(PACKAGE, 'ashlar_gpu')) if name.endswith('.py'))
    files = [os.path.join(PACKAGE, 'ashlar_gpu', name) for name in [*names, 'results'] if not name.startswith(INTEGRATIONS)]
    config = bench.path('pyrightconfig.json')
    with open(config, 'w', encoding='utf-8') as out:
        json.dump({'include': files, 'extraPaths': [PACKAGE], 'pythonVersion': '3.9', 'typeCheckingMode': 'standard'}, out)
    words = {'mypy': ['-m', 'mypy', '--strict', '--no-incremental', *files],
             'basedpyright': ['-m', 'basedpyright', '--level', 'error', '-p', config]}[checker]
    run = bench_module.start([python(), *words], {}, 600, cwd=PACKAGE)
    verdict.equal(f'exit code of {checker}', run.code, 0)
    verdict.failures += [line.strip() for line in run.out.splitlines() if ' error: ' in line or ' - error: ' in line][:5]
    verdict.cells['time'] = seconds(run.seconds)
    return verdict


def rows():
    out = [(f'on_oom, {how}', 30, lambda bench, h=how: on_oom(bench, h)) for how in ('dies', 'caught', 'thread', 'backward')]
    out += [('on_oom, two ranks', 40, on_oom_ranks), ('on_oom, our allocator', 30, on_oom_plugin),
            ('record', 30, recorded), ('functions and models', 60, called)]
    out += [(f'notebook, {where}', 60, lambda bench, w=where: notebook(bench, w)) for where in ('here', 'without a GPU', 'on_oom')]
    out += [(f'pytest, {n or "no"} workers', 150, lambda bench, n=n: tests(bench, n)) for n in (0, 2)]
    out += [(f'types, {checker}', 60, lambda bench, c=checker: types(bench, c)) for checker in ('mypy', 'basedpyright')]
    return [Row('python-api', name, time, run, is_usual=False) for name, time, run in out]
