"""Virtual environments with the wheels that real programs need, kept between runs outside the tree.

They lie in the folder that ASHLAR_REAL_VENVS names, else in ~/.cache/ashlar/venvs. One that has what is asked for is
taken as it is. pip reads no settings of the machine's, because some name folders with builds for the CPU.

    python = venvs.python_of('torch-2.14.1')   # raises Skip, with pip's own last line, where it cannot be had
"""
import glob
import os
import subprocess
import sys
import threading

from rows import Skip

COMMON = ['transformers==4.57.1', 'accelerate', 'peft', 'bitsandbytes']
WANTED = {
    'torch-2.14.1': ['torch==2.14.1', 'torchvision==0.29.1'] + COMMON,
    'torch-2.15.0': ['torch==2.15.0', 'numpy'],
    'torch-2.13.0': ['torch==2.13.0', 'numpy'],
    'torch-2.12.0': ['torch==2.12.0', 'numpy'],
    'torch-2.6.0': ['torch==2.6.0', 'numpy'],
    'torch-2.0.1': ['torch==2.0.1', 'numpy<2'],
    'cuda12': ['nvidia-cuda-runtime-cu12', 'nvidia-cublas-cu12'],
    'numba': ['numba-cuda[cu13]', 'numpy'],
    'cuda-core': ['cuda-core[cu13]', 'nvidia-cuda-nvrtc', 'numpy'],
    'onnxruntime': ['onnxruntime-gpu[cuda,cudnn]', 'onnx'],
    'jax': ['jax[cuda13]'],
    'tensorflow': ['tensorflow[and-cuda]==2.21.0'],
    'cupy-14': ['cupy-cuda13x[ctk]', 'numpy'],
    'cupy-13': ['cupy-cuda12x==13.6.0', 'numpy<2.4', 'nvidia-cuda-nvrtc-cu12', 'nvidia-cuda-runtime-cu12', 'nvidia-cublas-cu12',
                'nvidia-cusolver-cu12', 'nvidia-cusparse-cu12', 'nvidia-cufft-cu12', 'nvidia-curand-cu12'],
    'rmm': ['rmm-cu13', 'numpy'],
    'cudf': ['cudf-cu13', 'numpy'],
    'cuda-bindings': ['cuda-bindings', 'numpy'],
    'vllm': ['vllm==0.33.0'],
    'exports': ['perfetto', 'protobuf', 'prometheus_client', 'duckdb==1.5.5', 'duckdb-extension-sqlite-scanner==1.5.5',
                'jsonschema'],
}
TORCH_RELEASES = [name.removeprefix('torch-') for name in WANTED if name.startswith('torch-')]  # the usual one first
OVER = {  # environments that add to another one, and see all that it has
    'transformers-5': ('torch-2.14.1', ['transformers==5.12.1']),
    'frameworks': ('torch-2.14.1', ['lightning==2.6.6', 'diffusers==0.39.0']),
    'deepspeed': ('torch-2.14.1', ['deepspeed', 'setuptools', 'ninja']),
    'megatron': ('torch-2.14.1', ['megatron-core==0.16.1']),
    'sglang': ('torch-2.14.1', ['sglang==0.5.23']),
    'cupy': ('torch-2.14.1', ['cupy-cuda13x']),
    'numba-tests': ('numba', ['pytest', 'filecheck', 'psutil']),
    'cupy-13.6.0': ('torch-2.14.1', ['cupy-cuda13x==13.6.0']),
    'cuda-core-0.3.2': ('cuda-core', ['cuda-core==0.3.2']),
    'cuda-core-0.7.0': ('cuda-core', ['cuda-core==0.7.0']),
    'cuda-core-1.0.1': ('cuda-core', ['cuda-core==1.0.1']),
    'one-pool': ('torch-2.14.1', ['numba-cuda[cu13]', 'cupy-cuda13x']),
    'python-api': ('torch-2.14.1', ['pytest', 'pytest-xdist', 'nbclient', 'ipykernel', 'mypy', 'basedpyright']),
}
MOST_SECONDS = 1500  # of one installation


def numbers(release):
    """'2.14.1' -> (2, 14, 1)"""
    return tuple(int(part) for part in release.split('.'))


# Prints what of the requirements is missing. Versions are compared only where they are pinned.
PROBE = """
import importlib.metadata as metadata, re, sys
for wanted in sys.argv[1:]:
    name, _, version = re.sub(r'\\[.*\\]', '', wanted).partition('==')
    name = re.split('[<>]', name)[0]
    try:
        found = metadata.version(name)
        if version and found.split('+')[0] != version:
            print(wanted)
    except metadata.PackageNotFoundError:
        print(wanted)
"""

_lock = threading.Lock()
_unavailable = {}  # name -> why


def folder():
    return os.environ.get('ASHLAR_REAL_VENVS') or os.path.expanduser('~/.cache/ashlar/venvs')


def environment():
    """pip's, without what this machine tells it of where packages lie."""
    out = {key: value for key, value in os.environ.items() if key not in ('PIP_FIND_LINKS', 'PIP_CONSTRAINT')}
    out['PIP_CONFIG_FILE'] = os.devnull
    return out


def lacks(python, wanted):
    if not os.path.exists(python):
        return wanted
    done = subprocess.run([python, '-c', PROBE] + wanted, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else wanted


def wanted_of(name):
    return OVER[name][1] if name in OVER else WANTED[name]


def see_all_of(base, target):
    """The environment `target` imports what `base` has, and installs over it."""
    (packages,) = glob.glob(os.path.join(target, 'lib', 'python3*', 'site-packages'))
    (others,) = glob.glob(os.path.join(folder(), base, 'lib', 'python3*', 'site-packages'))
    with open(os.path.join(packages, 'base.pth'), 'w', encoding='utf-8') as out:
        out.write(f'import site; site.addsitedir({others!r})\n')


def install(name, python, wanted):
    target = os.path.dirname(os.path.dirname(python))
    os.makedirs(folder(), exist_ok=True)
    log = target + '.log'
    print(f'        installs {name}: {" ".join(wanted)}; pip\'s words are in {log}', flush=True)
    if not os.path.exists(python):
        subprocess.run([sys.executable, '-m', 'venv', target], check=True)
        if name in OVER:
            see_all_of(OVER[name][0], target)
    with open(log, 'w', encoding='utf-8') as out:
        command = [python, '-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '-q'] + wanted
        try:
            done = subprocess.run(command, stdout=out, stderr=out, env=environment(), timeout=MOST_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f'pip took longer than {MOST_SECONDS} s'
    if done.returncode == 0:
        return ''
    with open(log, encoding='utf-8', errors='replace') as lines:
        said = [line.strip() for line in lines if line.startswith('ERROR')] or ['pip failed']
    return said[-1]


def python_of(name):
    """The environment's interpreter, with everything in it."""
    if name in OVER:
        python_of(OVER[name][0])
    python, wanted = os.path.join(folder(), name, 'bin', 'python'), wanted_of(name)
    with _lock:
        if name in _unavailable:
            raise Skip(f'{name}: {_unavailable[name]}')
        if not lacks(python, wanted):
            return python
        why_not = install(name, python, wanted)
        if not why_not and lacks(python, wanted):
            why_not = 'pip installed something else'
        if why_not:
            _unavailable[name] = why_not
            raise Skip(f'{name}: {why_not}')
        return python
