"""Frameworks that do not call CUDA as PyTorch does: they run over the hollow device, or are refused in one line."""
import venvs
from bench import AMPLE, PROGRAMS
from catalog import torchrun
from rows import Row, Verdict
from sizes import mib, seconds

TRIED = {  # name -> (environment, script, ranks); then flags, and seconds that it may take
    'DeepSpeed, ZeRO 2, 2 ranks': ('deepspeed', 'try_deepspeed.py', 2),
    'numba-cuda': ('numba', 'try_numba.py', 0),
    'cuda.core': ('cuda-core', 'try_cuda_core.py', 0),
    'onnxruntime-gpu': ('onnxruntime', 'try_onnxruntime.py', 0),
    'JAX': ('jax', 'try_jax.py', 0),
    'CuPy': ('cupy', 'try_cupy.py', 0),
    'vLLM, offline generation': ('vllm', 'try_vllm.py', 0, ['--values', 'ones'], 400),
}


def refusal(run):
    """Our own line that says why a program is not served."""
    lines = [line for line in run.words.splitlines() if line.startswith('ashlar:')]
    return lines[0].replace('ashlar: ', '', 1) if lines else ''


def measure(bench, environment, script, ranks, flags=(), most_seconds=120):
    python, verdict = venvs.python_of(environment), Verdict()
    devices = (['--devices', str(ranks)] if ranks else []) + list(flags)
    run = bench.dry_run(python, torchrun(ranks) + [script], AMPLE + devices, most_seconds=most_seconds,
                        cwd=PROGRAMS, keeps=False)
    verdict.cells['time'] = seconds(run.seconds)
    line = refusal(run)
    if run.code == 0:
        verdict.equal('processes that told what they did', len(run.told), ranks or 1)
        verdict.expect(run.report['peak_bytes'] > 0, 'it ran without the device')
        verdict.cells.update({'seen': 'runs', 'peak of the device': mib(run.report['peak_bytes'])})
    elif line:
        verdict.cells['seen'] = f'refused: {"/".join(line.split("/")[-2:])}'
        verdict.expect('a hollow device does not' in line, f'refused by an unknown line: {line}')
    else:
        verdict.failures.append(f'it ended with {run.code}: {run.last_line}')
    return verdict


def rows():
    return [Row('others', name, 15, lambda bench, a=arguments: measure(bench, *a), is_usual=False)
            for name, arguments in TRIED.items()]
