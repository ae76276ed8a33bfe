"""llama.cpp's own CUDA build, as node-llama-cpp brings it, over the hollow device: a native program, and its history."""
import glob
import os
import shutil
import subprocess
import sys

import venvs
from bench import HERE
from rows import Row, Skip, Verdict
from sizes import mib, seconds

SOURCE = os.path.join(HERE, 'llama_cpp')
TOKENS = 16
WEIGHT_BYTES = 2_391_000_000  # of make_gguf.py's model, without the embedding, which stays on the host


def node_folder():
    """Where the npm packages lie; made once."""
    for tool in ('node', 'npm'):
        if shutil.which(tool) is None:
            raise Skip(f'there is no {tool}')
    folder = os.path.join(venvs.folder(), 'llama_cpp')
    os.makedirs(folder, exist_ok=True)
    for name in ('package.json', 'generate.mjs'):
        shutil.copy(os.path.join(SOURCE, name), folder)
    if not os.path.isdir(os.path.join(folder, 'node_modules', 'node-llama-cpp')):
        done = subprocess.run(['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund'], cwd=folder,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Skip(f'npm: {(done.stderr.strip().splitlines() or ["failed"])[-1]}')
    return folder


def program(bench):
    """(its words, its environment, the folder that it runs in)."""
    folder = node_folder()
    packages = os.path.dirname(os.path.dirname(venvs.python_of('cuda12')))
    libraries = glob.glob(os.path.join(packages, 'lib', 'python3*', 'site-packages', 'nvidia', '*', 'lib'))
    model = bench.path('zeros.gguf')
    subprocess.run([sys.executable, os.path.join(SOURCE, 'make_gguf.py'), model], check=True)
    return ['node', 'generate.mjs', model, str(TOKENS)], {'LD_LIBRARY_PATH': os.pathsep.join(libraries)}, folder


def measure(bench):
    words, environment, folder = program(bench)
    verdict = Verdict()
    run = bench.dry_run(words[0], words[1:], ['--device', 'RTX4090'], environment, cwd=folder)
    verdict.equal('exit code', run.code, 0)
    if run.code != 0 or not run.told:
        verdict.failures.append(run.last_line)
        return verdict
    verdict.equal('tokens', run.told[0]['generated'], TOKENS)
    verdict.equal('devices', run.told[0]['devices'], ['NVIDIA GeForce RTX 4090'])
    peak = run.report['peak_bytes']
    verdict.equal('memory in use that the program saw', run.told[0]['used'], peak)
    verdict.expect(peak > WEIGHT_BYTES, f'the peak of {mib(peak)} is less than the weights')
    explanation = run.report['explanation']
    held = explanation and explanation['accounting']['reserved_bytes']
    verdict.expect(bool(held) and WEIGHT_BYTES < held < peak, f'the history has {held} bytes of a peak of {peak}')
    verdict.cells.update({'time': seconds(run.seconds), 'seen': 'runs', 'peak of the device': mib(peak)})
    return verdict


def rows():
    return [Row('others', 'llama.cpp (node-llama-cpp)', 20, measure, is_usual=False)]
