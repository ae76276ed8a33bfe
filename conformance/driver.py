"""NVIDIA's own libcuda.so.1, on a machine without a GPU, under what record and run-under preload, and under our CUDA device.

Programs open the driver for themselves alone, as they do on a machine with a GPU, and find no device. Each must end as it does
without us. The library is that of Debian's package libcuda1 (non-free), downloaded once beside the environments.
"""
import lzma
import os
import re
import subprocess
import sys
import urllib.request

import plugin
import programs
import venvs
from bench import start
from rows import Row, Skip, Verdict

DEVICE_FILE = '/dev/nvidiactl'  # the library makes it where it runs as root
DEBIAN = 'http://deb.debian.org/debian/'
SUITES = ('sid', 'trixie', 'bookworm')
LIBRARY = 'usr/lib/x86_64-linux-gnu/nvidia/current'
PROGRAMS = {  # the driver is of CUDA 12.4; the newer PyTorch says that it is too old
    'new_torch': (programs.HOME, 'import torch; torch.ones(1, device="cuda")'),
    'torch': ('torch-2.6.0', 'import torch; torch.ones(1, device="cuda")'),
    'numba': ('numba', 'from numba import cuda; cuda.to_device([1.0])'),
    'cuda_core': ('cuda-core', 'from cuda.bindings import driver; print(driver.cuInit(0), driver.cuMemAlloc(8))'),
    'cupy': ('cupy', 'import cupy; cupy.ones(3)'),
}


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except OSError as error:
        raise Skip(f'{url}: {error}') from error


def newest():
    """The address of the package."""
    for suite in SUITES:
        packages = lzma.decompress(fetch(f'{DEBIAN}dists/{suite}/non-free/binary-amd64/Packages.xz')).decode()
        found = re.search(r'^Package: libcuda1\n(?:.+\n)*?Filename: (\S+)', packages, re.MULTILINE)
        if found:
            return DEBIAN + found.group(1)
    raise Skip('Debian has no libcuda1')


def driver():
    """The folder with libcuda.so.1, and which it is."""
    folder = os.path.join(venvs.folder(), 'libcuda')
    library = os.path.join(folder, LIBRARY)
    if not os.path.exists(os.path.join(library, 'libcuda.so.1')):
        os.makedirs(folder, exist_ok=True)
        package = os.path.join(folder, 'libcuda1.deb')
        with open(package, 'wb') as out:
            out.write(fetch(newest()))
        subprocess.run(['dpkg', '-x', package, folder], check=True)
    return library, os.path.basename(os.path.realpath(os.path.join(library, 'libcuda.so.1')))


def said(run):
    """The last line of what a program said."""
    return (run.words.strip() or run.out.strip() or '-').splitlines()[-1]


def ends_alike(bench, environment, text):
    python, verdict = venvs.python_of(environment), Verdict()
    library, name = driver()
    machine = {'LD_LIBRARY_PATH': library, 'PYTHONFAULTHANDLER': '1'}
    plain = start([python, '-c', text], machine)
    record = start([bench.ashlar, 'record', '-o', os.path.join(bench.new_folder('record'), 'kept'), '--', python, '-c', text],
                   machine)
    served = start([bench.ashlar, 'run-under', '--serve', '--', python, '-c', text], machine)
    verdict.expect(said(plain) != '-', 'the program says nothing of the driver')
    for words, run in (('record', record), ('run-under --serve', served)):
        verdict.equal(f'exit code under {words}', run.code, plain.code)
        verdict.expect(said(plain) in run.words + run.out, f'{words}: no line "{said(plain)}"')
    verdict.cells['driver'] = name
    verdict.cells['says'] = said(plain)[:90]
    return verdict


def our_device(bench):
    """The allocator's own CUDA device, by the C interface: no GPU is one line that says so, and no crash."""
    verdict = Verdict()
    library, name = driver()
    run = start([sys.executable, '-c', 'from ashlar_gpu import _library as c; c.process_allocator(0)'],
                {'LD_LIBRARY_PATH': library, **plugin.environment(bench)})
    verdict.equal('exit code', run.code, 1)
    verdict.expect('CUDA_ERROR_NO_DEVICE' in run.last_line, f'it says: {run.last_line}')
    verdict.cells['driver'] = name
    verdict.cells['says'] = run.last_line[:120]
    return verdict


def without_traces(run):
    """The row, and no device file left that was not there: others take it for a GPU."""
    def row(bench):
        was_there = os.path.exists(DEVICE_FILE)
        try:
            return run(bench)
        finally:
            if not was_there and os.path.exists(DEVICE_FILE):
                os.remove(DEVICE_FILE)

    return row


def row_of(name, environment, text):
    return Row('driver', name, 8, without_traces(lambda bench: ends_alike(bench, environment, text)),
               is_usual=environment == programs.HOME)


def rows():
    out = [row_of(name, environment, text) for name, (environment, text) in PROGRAMS.items()]
    return out + [Row('driver', 'our_device', 4, without_traces(our_device))]
