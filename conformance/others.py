"""Frameworks that do not call CUDA as PyTorch does: they run over the hollow device, or are refused in one line.

CuPy, RMM and cuda.bindings have a CUDA runtime linked in, stripped of names in the last two. `did` says what such a
program must have told of itself. A process may have the shared runtimes of two versions as well.
"""
import glob
import os

import venvs
from bench import AMPLE, CONTEXT_BYTES, PROGRAMS
from catalog import torchrun
from rows import Row, Verdict
from sizes import mib, seconds

TRIED = {  # name -> (environment, script and arguments, ranks); then flags, and seconds that it may take
    'DeepSpeed, ZeRO 2, 2 ranks': ('deepspeed', 'try_deepspeed.py', 2),
    'numba-cuda': ('numba', 'try_numba.py', 0),
    'cuda.core': ('cuda-core', 'try_cuda_core.py', 0),
    'onnxruntime-gpu': ('onnxruntime', 'try_onnxruntime.py', 0),
    'vLLM, offline generation': ('vllm', 'try_vllm.py', 0, [], 400),
    'vLLM, compiled, with CUDA graphs': ('vllm', 'try_vllm.py graphs', 0, [], 1800),
    'cuDF': ('cudf', 'try_cudf.py', 0),
    'SGLang, offline engine': ('sglang', 'try_sglang.py', 0, [], 900),
}

MIB = 1 << 20
# CuPy 13 looks for NVIDIA's libraries in the system alone, and not in the wheels beside it.
CUPY_13_OPENS = 'libnvrtc.so.12 libcublas.so.12 libnvJitLink.so.12 libcusparse.so.12 libcusolver.so.11 libcufft.so.11 libcurand.so.10'
# name -> (environment, script, libraries that it opens first, what it must tell)
LINKED = {
    'CuPy 14': ('cupy-14', 'try_cupy.py', '', {
        'used': 4 * MIB, 'variable': 1024, 'shapes': [[512, 512], [512, 512], [4]], 'pinned': 65536}),
    'CuPy 13, CUDA 12': ('cupy-13', 'try_cupy.py', CUPY_13_OPENS, {
        'used': 4 * MIB, 'variable': 1024, 'shapes': [[512, 512], [512, 512], [4]], 'pinned': 65536}),
    'CuPy beside PyTorch': ('cupy', 'try_cupy_torch.py', '', {
        'taken': 64 * MIB, 'same_address': True, 'same_books': True, 'graph_is_printed': True}),
    'RMM': ('rmm', 'try_rmm.py', '', {'sizes': [MIB] * 4}),
    'cuda.bindings': ('cuda-bindings', 'try_cuda_bindings.py', '', {
        'same_books': True, 'returned': 64 * MIB}),
    'JAX': ('jax', 'try_jax.py', '', {'shape': [256, 256]}),
    'TensorFlow': ('tensorflow', 'try_tensorflow.py', 'libcusolver.so.11', {'epochs': 2, 'parameters': 7378890}),
}
# Bytes of a device's properties. CUDA 12 has a second name for its own, and the first as CUDA 11 has it.
PROPERTIES = {'12 cudaGetDeviceProperties': 728, '12 cudaGetDeviceProperties_v2': 1032, '13 cudaGetDeviceProperties': 1008}


def refusal(run):
    """Our own line that says why a program is not served."""
    lines = [line for line in run.words.splitlines() if line.startswith('ashlar:')]
    return lines[0].replace('ashlar: ', '', 1) if lines else ''


def measure(bench, environment, script, ranks, flags=(), most_seconds=120):
    python, verdict = venvs.python_of(environment), Verdict()
    devices = (['--devices', str(ranks)] if ranks else []) + list(flags)
    run = bench.dry_run(python, torchrun(ranks) + script.split(), AMPLE + devices, most_seconds=most_seconds,
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


def libraries_of(python, names):
    """The paths of NVIDIA's libraries in an environment, in the order of their names."""
    packages = os.path.join(os.path.dirname(os.path.dirname(python)), 'lib', 'python3*', 'site-packages', 'nvidia')
    return [path for name in names.split() for path in glob.glob(os.path.join(packages, '*', 'lib', name))]


def measure_linked(bench, environment, script, library, did):
    python, verdict = venvs.python_of(environment), Verdict()
    run = bench.dry_run(python, [script] + libraries_of(python, library), AMPLE, most_seconds=300, cwd=PROGRAMS,
                        keeps=False)
    verdict.cells['time'] = seconds(run.seconds)
    if run.code != 0:
        verdict.failures.append(f'it ended with {run.code}: {refusal(run) or run.last_line}')
        return verdict
    (told,) = run.told
    for key, wanted in did.items():
        verdict.equal(key, told.get(key), wanted)
    if 'failure' in told:
        verdict.expect('memory' in told['failure'].lower() or 'OOM' in told['failure'],
                       f'the request that is too large: {told["failure"]!r}')
    verdict.expect(run.report['peak_bytes'] > 0, 'it ran without the device')
    if 'peak_in_use' in told:
        (jax,) = [process['jax'] for process in run.report['processes']]
        verdict.equal('what JAX had in use', jax['devices'][0]['peak_in_use_bytes'], told['peak_in_use'])
    verdict.cells.update({'seen': 'runs', 'peak of the device': mib(run.report['peak_bytes'])})
    return verdict


def measure_two_runtimes(bench, order):
    """The runtimes of CUDA 12 and 13, opened in that order by one process."""
    python, verdict = venvs.python_of('torch-2.14.1'), Verdict()
    paths = {'12': libraries_of(venvs.python_of('cuda12'), 'libcudart.so.12'), '13': libraries_of(python, 'libcudart.so.13')}
    run = bench.dry_run(python, ['try_two_runtimes.py'] + [path for major in order for path in paths[major]], AMPLE,
                        cwd=PROGRAMS, keeps=False)
    verdict.cells['time'] = seconds(run.seconds)
    if run.code != 0:
        verdict.failures.append(f'it ended with {run.code}: {refusal(run) or run.last_line}')
        return verdict
    (told,) = run.told
    for key, wanted in {'majors': [int(major) for major in order], 'same_books': True, 'held': 192 * MIB, 'returned': True,
                        'properties': PROPERTIES}.items():
        verdict.equal(key, told[key], wanted)
    verdict.equal('peak of the device', run.report['peak_bytes'], 192 * MIB + CONTEXT_BYTES)
    verdict.cells.update({'seen': 'runs', 'peak of the device': mib(run.report['peak_bytes'])})
    return verdict


def rows():
    return [Row('others', name, 15, lambda bench, a=arguments: measure(bench, *a), is_usual=False)
            for name, arguments in TRIED.items()] + \
           [Row('others', name, 20, lambda bench, a=arguments: measure_linked(bench, *a), is_usual=False)
            for name, arguments in LINKED.items()] + \
           [Row('others', f'the runtimes of CUDA {one} and {other} in one process', 5,
                lambda bench, order=(one, other): measure_two_runtimes(bench, order), is_usual=False)
            for one, other in (('12', '13'), ('13', '12'))]
