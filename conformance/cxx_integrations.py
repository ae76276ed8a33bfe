"""The C++ integrations with the headers of other releases, which PyPI's wheels bring, and onnxruntime-gpu with its allocator.
The checks are those of tests/integrations; the toolkit's own headers are the test integrations.clients."""
import glob
import os
import subprocess
import sys
import zipfile

import venvs
from bench import AMPLE, HERE, PROGRAMS
from rows import Row, Skip, Verdict

sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'tests', 'integrations'))
import client_checks  # noqa: E402
from clients import Failed, Missing, Tools  # noqa: E402

CCCL = {'3.1': ('13.1.115', '3001004'), '3.2': ('13.2.86', '3002000'), '3.5': ('13.3.5.0.6', '3005000')}
RMM = {'25.12': '25.12.0', '26.04': '26.4.0', '26.06': '26.6.0', '26.10': '26.10.0'}
LOGGER = 'rapids-logger==0.3.0'  # librmm links it


def wheel(wanted):
    """The folder of an unpacked wheel, such as "librmm-cu13==26.10.0"; made once."""
    folder = os.path.join(venvs.folder(), 'wheels', wanted.replace('==', '-'))
    if os.path.isdir(folder):
        return folder
    downloads = folder + '.download'
    done = subprocess.run([sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '--dest', downloads, wanted],
                          capture_output=True, text=True, env=venvs.environment(), check=False)
    if done.returncode != 0:
        raise Skip(f'{wanted}: {(done.stderr.strip().splitlines() or ["pip failed"])[-1]}')
    (path,) = glob.glob(os.path.join(downloads, '*.whl'))
    with zipfile.ZipFile(path) as packed:
        packed.extractall(folder + '.part')
    os.rename(folder + '.part', folder)
    return folder


def tools_of(bench):
    library = os.path.join(os.path.dirname(os.path.dirname(bench.ashlar)), 'lib')
    if not os.path.exists(os.path.join(library, 'libashlar.so')):
        raise Skip(f'{library} has no libashlar.so: build the target ashlar_c')
    return Tools(bench.ashlar, library, bench.new_folder('integrations'))


def judge(check):
    verdict = Verdict()
    try:
        verdict.cells['seen'] = check()
    except Missing as reason:
        raise Skip(str(reason)) from reason
    except Failed as reason:
        verdict.failures.append(' '.join(str(reason).split()))
    return verdict


def measure_cccl(bench, release, version):
    headers = os.path.join(wheel(f'nvidia-cuda-cccl=={release}'), 'nvidia', 'cu13', 'include', 'cccl')
    return judge(lambda: client_checks.cuda_mr(tools_of(bench), [headers], version))


def measure_rmm(bench, release, version):
    librmm, logger = wheel(f'librmm-cu13=={release}'), wheel(LOGGER)
    return judge(lambda: client_checks.rmm(tools_of(bench), os.path.join(librmm, 'librmm'),
                                           os.path.join(logger, 'rapids_logger'), version))


def measure_onnxruntime(bench):
    """Ten runs of a graph: without the integration, and with it."""
    python, verdict = venvs.python_of('onnxruntime'), Verdict()
    library = os.path.join(tools_of(bench).library, 'libashlar.so')
    plain, integration = (bench.dry_run(python, ['integration_onnxruntime.py', word], AMPLE, cwd=PROGRAMS, keeps=False)
                   for word in ('plain', library))
    for run in (plain, integration):
        if run.code != 0 or len(run.told) != 1:
            verdict.failures.append(f'it ended with {run.code}: {run.last_line}')
            return verdict
    told = integration.told[0]
    verdict.equal('shape', told['shape'], plain.told[0]['shape'])
    verdict.expect(told['allocations'] >= 20, f'the allocator served {told["allocations"]} requests')
    verdict.expect(0 < told['device_allocations'] < 5, f'{told["device_allocations"]} device allocations')
    verdict.cells['seen'] = f'{told["allocations"]} requests, {told["device_allocations"]} device allocations'
    return verdict


def rows():
    out = [Row('integrations', f'cuda::mr of CCCL {name}', 40, lambda bench, a=wanted: measure_cccl(bench, *a), is_usual=False)
           for name, wanted in CCCL.items()]
    out += [Row('integrations', f'RMM {name}, its headers', 20, lambda bench, a=(release, name): measure_rmm(bench, *a),
                is_usual=False) for name, release in RMM.items()]
    return out + [Row('integrations', 'onnxruntime-gpu, external allocator', 10, measure_onnxruntime, is_usual=False)]
