"""Programs that were built without us, served by our allocator over the hollow device: the same output, fewer calls."""
import os
import pickle
import re
import subprocess

import llama
import venvs
from bench import HERE, PROGRAMS
from rows import Row, Skip, Verdict
from sizes import mib, seconds

COMPILER = '/usr/local/cuda/bin/nvcc'
CARD = ['--device', 'RTX4090']
SERVED = re.compile(r'served ([\d,]+) allocations? and [\d,]+ frees? by [\d,]+ calls? of the device '
                    r'\(([\d,]+) that gave memory')
LEFT = re.compile(r'not freed ([\d.]+ \w+)')


def number(text):
    return int(text.replace(',', ''))


def device_calls(history):
    """Those that gave memory, and those that took it back, of a recorder that stands beneath all else."""
    with open(history, 'rb') as file:
        traces = pickle.load(file)['device_traces']
    actions = [entry['action'] for trace in traces for entry in trace]
    return actions.count('segment_alloc') + actions.count('segment_map'), \
        actions.count('segment_free') + actions.count('segment_unmap')


def run_both(bench, name, program, environment=None, cwd=None):
    """The program over the hollow device, without our allocator and with it: (run, history) of each."""
    out = []
    for under in ([], [bench.ashlar, 'run-under', '--serve', '--']):
        history = bench.path(f'{name}-{len(out)}.pickle')
        words = under + program
        run = bench.dry_run(words[0], words[1:], CARD + ['-o', history], environment, cwd=cwd, keeps=False)
        out.append((run, history))
    return out


def judge_served(verdict, bare, served, most_own=0):
    """Equal exit codes, and the recorder beneath counts what the served run says of itself."""
    verdict.equal('exit code without us', bare[0].code, 0)
    verdict.equal('exit code', served[0].code, 0)
    told = SERVED.search(served[0].words)
    verdict.expect(told is not None, f'nothing is said of what was served: {served[0].last_line}')
    if told is None or not os.path.exists(bare[1]) or not os.path.exists(served[1]):
        verdict.failures.append(f'no history: {bare[0].last_line} | {served[0].last_line}')
        return
    calls_bare, calls_served = device_calls(bare[1]), device_calls(served[1])
    # Virtual memory, which a program maps itself: the same calls in both runs.
    own = calls_bare[0] - number(told[1])
    verdict.equal('calls that are not served', calls_served[0] - number(told[2]), own)
    verdict.expect(0 <= own <= most_own, f'{own} of {calls_bare[0]} allocations are not served')
    verdict.cells.update({
        'time': f'{seconds(bare[0].seconds)}, {seconds(served[0].seconds)} served',
        'calls of the device': f'{sum(calls_bare):,}, {sum(calls_served):,} served',
        'peak of the device': f'{mib(bare[0].report["peak_bytes"])}, {mib(served[0].report["peak_bytes"])} served',
    })


def compiled(bench, name):
    if not os.path.exists(COMPILER):
        raise Skip(f'there is no {COMPILER}')
    program = bench.path(name)
    source = os.path.join(HERE, 'native', name + '.cu')
    done = subprocess.run([COMPILER, '-cudart', 'shared', '-arch=sm_86', '-o', program, source], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise Skip(f'nvcc: {(done.stderr.strip().splitlines() or ["failed"])[-1]}')
    return program


def own_words(run, first):
    return [line for line in (run.words + run.out).splitlines() if line.startswith(first)]


def thrust(bench):
    verdict, program = Verdict(), bench.once('turns', lambda: compiled(bench, 'turns'))
    bare, served = run_both(bench, 'turns', [program, '1000'])
    words = own_words(bare[0], 'turns ')
    verdict.equal('lines of its output', len(words), 1)
    verdict.equal('output', own_words(served[0], 'turns '), words)
    judge_served(verdict, bare, served)
    left = LEFT.search(served[0].words)
    verdict.equal('not freed', left and left[1], '0 B')
    calls_bare, calls_served = sum(device_calls(bare[1])), sum(device_calls(served[1]))
    verdict.expect(calls_served * 100 < calls_bare, f'{calls_served} calls of the device in place of {calls_bare}')
    return verdict


def llama_served(bench):
    verdict = Verdict()
    program, environment, folder = llama.program(bench)
    bare, served = run_both(bench, 'llama', program, environment, folder)
    judge_served(verdict, bare, served, most_own=4)
    if bare[0].told and served[0].told:
        same = [{key: told[0][key] for key in ('gpu', 'devices', 'generated')} for told in (bare[0].told, served[0].told)]
        verdict.equal('output', same[1], same[0])
        verdict.equal('tokens', same[1]['generated'], llama.TOKENS)
    else:
        verdict.failures.append(f'no output: {bare[0].last_line} | {served[0].last_line}')
    return verdict


def llama_recorded(bench):
    """Recorded by run-under, and explained: the weights are there, by the line that took them."""
    verdict = Verdict()
    program, environment, folder = llama.program(bench)
    history = bench.path('recorded.ashlar')
    words = [bench.ashlar, 'run-under', '--record', '-o', history, '--'] + program
    run = bench.dry_run(words[0], words[1:], CARD, environment, cwd=folder, keeps=False)
    verdict.equal('exit code', run.code, 0)
    explained = subprocess.run([bench.ashlar, 'explain', history], capture_output=True, text=True, check=False)
    verdict.equal('explain', explained.returncode, 0)
    verdict.expect('ggml_' in explained.stdout, f'no line of llama.cpp in: {explained.stdout[:300]}')
    verdict.cells.update({'time': seconds(run.seconds), 'seen': 'recorded and explained'})
    return verdict


def numba_served(bench):
    """It finds the driver's functions as a runtime that is linked statically does: by dlsym and cuGetProcAddress."""
    verdict = Verdict()
    program = [venvs.python_of('numba'), os.path.join(PROGRAMS, 'numba_turns.py')]
    bare, served = run_both(bench, 'numba', program)
    verdict.equal('programs that told what they did', len(bare[0].told), 1)
    verdict.equal('output', served[0].told, bare[0].told)
    judge_served(verdict, bare, served)
    return verdict


def pools_left(bench):
    """cuda.core asks for the device's pool, which is CUDA's from then on."""
    verdict = Verdict()
    words = [bench.ashlar, 'run-under', '--serve', '--', venvs.python_of('cuda-core'),
             os.path.join(PROGRAMS, 'try_cuda_core.py')]
    run = bench.dry_run(words[0], words[1:], CARD, keeps=False)
    verdict.equal('exit code', run.code, 0)
    verdict.equal('programs that told what they did', len(run.told), 1)
    verdict.expect('manages CUDA\'s memory pools itself' in run.words, f'nothing is said of its pools: {run.last_line}')
    verdict.cells.update({'time': seconds(run.seconds), 'seen': 'left to CUDA\'s pools'})
    return verdict


def torch_left(bench):
    """PyTorch has an allocator of its own: its peak is what it is without us."""
    verdict = Verdict()
    program = [venvs.python_of('torch-2.14.1'), os.path.join(PROGRAMS, 'plain.py')]
    bare = bench.dry_run(program[0], program[1:], CARD, keeps=False)
    run = bench.dry_run(bench.ashlar, ['run-under', '--serve', '--'] + program, CARD, keeps=False)
    verdict.equal('exit code', run.code, 0)
    verdict.expect('ashlar: PyTorch is in this process' in run.words, f'nothing is said of PyTorch: {run.last_line}')
    if run.code == 0 and bare.code == 0:
        verdict.equal('peak of the device', run.report['peak_bytes'], bare.report['peak_bytes'])
        verdict.cells.update({'time': seconds(run.seconds), 'peak of the device': mib(run.report['peak_bytes'])})
    return verdict


def rows():
    return [Row('under', 'Thrust, 1,000 turns', 20, thrust, is_usual=False),
            Row('under', 'llama.cpp (node-llama-cpp), served', 30, llama_served, is_usual=False),
            Row('under', 'llama.cpp (node-llama-cpp), recorded', 20, llama_recorded, is_usual=False),
            Row('under', 'numba, 200 turns', 10, numba_served, is_usual=False),
            Row('under', 'cuda.core, with pools', 10, pools_left, is_usual=False),
            Row('under', 'PyTorch, left alone', 15, torch_left)]
