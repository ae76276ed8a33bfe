"""Compiles client programs of the C++ integrations as their users would, and runs them over the hollow device.

    tools = Tools(ashlar='build/release/bin/ashlar', library='build/release/lib', folder='/tmp/x')
    program = tools.nvcc('docs/examples/integrations/thrust.cu')
    run = tools.run(program, ['plain'])
    run.code, run.words, run.counts                     # {'allocate': 207, 'free': 207}: calls on device memory

A tool that is missing raises Missing, with what to install.
"""
import collections
import dataclasses
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, 'docs', 'examples', 'integrations')
CLIENTS = os.path.join(ROOT, 'tests', 'integrations', 'clients')
STRICT = ['-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Wno-sign-conversion', '-Werror']
BEHIND_A_MACRO = '-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE'  # CCCL up to 3.0, RMM up to 25.12


class Missing(Exception):
    pass


class Failed(Exception):
    pass


@dataclasses.dataclass
class Run:
    code: int
    words: str  # all that it printed
    counts: dict  # name of a call on device memory -> how often

    @property
    def allocations(self):
        return sum(self.counts.get(name, 0) for name in ('allocate', 'allocate_async', 'create'))


class Tools:
    def __init__(self, ashlar, library, folder):
        self.ashlar, self.library, self.folder = ashlar, library, folder
        self._runs = 0

    def _link(self):
        return ['-L', self.library, '-lashlar']

    def _compile(self, command, source):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f'{os.path.basename(source)} does not compile: {(done.stderr or done.stdout)[:2000]}')

    def _program(self, source, name):
        return os.path.join(self.folder, name or os.path.splitext(os.path.basename(source))[0])

    def nvcc(self, source, headers=(), flags=(), name=''):
        """`headers`: folders that go before the toolkit's."""
        if shutil.which('nvcc') is None:
            raise Missing('there is no nvcc')
        program = self._program(source, name)
        includes = [word for folder in headers for word in ('-I', folder)]
        self._compile(['nvcc', '-std=c++17', '-O1', '-cudart', 'shared', '-arch=sm_80', '-Werror', 'all-warnings', *flags,
                       *includes, '-I', os.path.join(ROOT, 'include'), source, *self._link(),
                       f'-Xlinker=-rpath={self.library}', '-o', program], source)
        return program

    def cxx(self, source, compiler='g++', standard='c++17', headers=(), flags=(), libraries=(), name=''):
        """By the host's compiler, with all warnings; `headers` are others', `libraries` folders and -l words."""
        if shutil.which(compiler) is None:
            raise Missing(f'there is no {compiler}')
        program = self._program(source, name)
        includes = [word for folder in headers for word in ('-isystem', folder)]
        self._compile([compiler, f'-std={standard}', '-O1', *STRICT, *flags, '-I', os.path.join(ROOT, 'include'), *includes,
                       source, *self._link(), *libraries, f'-Wl,-rpath,{self.library}', '-o', program], source)
        return program

    def need_libcxx(self):
        """Debian has clang's standard library in packages of its own."""
        done = subprocess.run(['clang++', '-stdlib=libc++', '-x', 'c++', '-fsyntax-only', '-'], input='#include <cstddef>\n',
                              capture_output=True, text=True, check=False) if shutil.which('clang++') else None
        if done is None or done.returncode != 0:
            raise Missing('there is no clang++ with libc++ (Debian: libc++-dev libc++abi-dev)')

    def run(self, program, arguments=(), flags=('--capacity', '16GiB'), environment=None):
        self._runs += 1
        log = os.path.join(self.folder, f'calls-{self._runs}')
        done = subprocess.run([self.ashlar, 'dry-run', *flags, '--calls', log, '--', program, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
                              env={**os.environ, **(environment or {})})
        counts = collections.Counter()
        if os.path.exists(log):
            with open(log, encoding='utf-8') as lines:
                counts.update(line.split()[0] for line in lines if line.strip())
        return Run(done.returncode, done.stdout, dict(counts))


def cuda_home():
    """The toolkit that nvcc is of."""
    nvcc = shutil.which('nvcc')
    if nvcc is None:
        raise Missing('there is no nvcc')
    done = subprocess.run([nvcc, '--dryrun', 'x.cu'], capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        if line.startswith('#$ TOP='):
            return os.path.realpath(line.removeprefix('#$ TOP='))
    raise Missing('nvcc does not tell where its toolkit is')
