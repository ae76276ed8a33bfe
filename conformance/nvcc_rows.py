"""Programs as nvcc links them by default, with CUDA's runtime in them, beside the same source with the shared runtime.

Each makes the calls on device memory that its twin makes, line by line: order, sizes, addresses, what is refused. Kernels do not run;
the programs are those of conformance/native. A library with a runtime in it is opened, or needed, by a program without one. Two
libraries with the runtimes of CUDA 12 and 13, out of NVIDIA's wheels, live in one process. The newest runtimes are searched.
"""
import glob
import os
import platform
import shutil
import subprocess
import zipfile

import others
import venvs
from bench import AMPLE, CONTEXT_BYTES, HERE, PROGRAMS, start
from rows import Row, Skip, Verdict
from sizes import mib, seconds

NATIVE = os.path.join(HERE, 'native')
DYNAMIC_LINKER = '/lib/ld-linux-aarch64.so.1' if platform.machine() == 'aarch64' else '/lib64/ld-linux-x86-64.so.2'
FORMS = {  # name -> (flags of nvcc, what is done with the file, what goes before it)
    'as nvcc links it': ('', [], []),
    'no PIE': ('-Xcompiler -fno-pie,-no-pie', [], []),
    'full RELRO, marks of indirect calls': ('-Xcompiler -fcf-protection=full -Xlinker -z,relro,-z,now', [], []),
    'strip -g': ('', ['strip', '-g'], []),
    'started by ld.so': ('', [], [DYNAMIC_LINKER]),
}
OPENER = '''#include <dlfcn.h>
int main() {
  void* library = dlopen("./libprogram.so", RTLD_LAZY);
  reinterpret_cast<int (*)()>(dlsym(library, "_Z12program_mainv"))();
}
'''
NEEDER = 'int program_main();\nint main() { program_main(); }\n'
MIB = 1 << 20


def nvcc():
    found = shutil.which('nvcc') or shutil.which('/usr/local/cuda/bin/nvcc')
    if found is None:
        raise Skip('there is no nvcc')
    return found


def build(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f'{" ".join(command[-4:])}: {done.stderr.strip()[-300:]}')


def compiled(bench, source, flags):
    """The file, which is made once. `flags`: of nvcc, as they are typed."""
    def make():
        folder = bench.new_folder('nvcc')
        build([nvcc(), '-o', 'program'] + flags.split() + [os.path.join(NATIVE, f'{source}.cu')], folder)
        return os.path.join(folder, 'program')
    return bench.once(('nvcc', source, flags), make)


def run_of(bench, words, cwd=None):
    """(the run, its calls on device memory)."""
    calls = os.path.join(bench.new_folder('calls'), 'calls')
    run = bench.dry_run(words[0], words[1:], ['--device', 'A10', '--calls', calls], cwd=cwd, keeps=False)
    if not os.path.exists(calls):
        return run, []
    with open(calls, encoding='utf-8') as lines:
        return run, lines.read().splitlines()


def shared_twin(bench, source):
    return bench.once(('shared twin', source), lambda: run_of(bench, [compiled(bench, source, '-cudart shared')]))


def needs_runtime(file):
    return 'libcudart' in subprocess.run(['ldd', file], capture_output=True, text=True, check=True).stdout


def compare(bench, source, words, command, cwd=None):
    verdict = Verdict()
    twin, wanted = shared_twin(bench, source)
    run, calls = run_of(bench, words, cwd)
    verdict.equal('exit code', run.code, 0)
    verdict.equal('exit code of the twin', twin.code, 0)
    verdict.expect(len(wanted) > 1, f'the twin made {len(wanted)} calls')
    different = [number for number, (one, other) in enumerate(zip(calls, wanted), 1) if one != other]
    verdict.expect(not different, f'line {different[:1]} of the calls differs')
    verdict.equal('calls', len(calls), len(wanted))
    if run.report is not None and twin.report is not None:
        verdict.equal('peak of the device', run.report['peak_bytes'], twin.report['peak_bytes'])
        verdict.cells.update({'build': command, 'equal calls': f'{len(wanted) - len(different):,} of {len(wanted):,}',
                              'time': seconds(run.seconds), 'peak of the device': mib(run.report['peak_bytes'])})
    return verdict


def measure_form(bench, source, form):
    flags, after, before = FORMS[form]
    program = compiled(bench, source, flags)
    if after:
        copy = os.path.join(bench.new_folder('nvcc'), 'program')
        shutil.copy(program, copy)
        build(after + [copy], None)
        program = copy
    verdict = compare(bench, source, before + [program], f'nvcc {flags}'.strip() + (f'; {" ".join(after)}' if after else ''))
    verdict.expect(not needs_runtime(program), 'it needs a shared runtime')
    return verdict


def measure_library(bench, source, main, flags):
    folder = bench.new_folder('nvcc')
    build([nvcc(), '-shared', '-Xcompiler', '-fPIC', '-Dmain=program_main', '-o', 'libprogram.so',
           os.path.join(NATIVE, f'{source}.cu')], folder)
    with open(os.path.join(folder, 'main.cc'), 'w', encoding='utf-8') as out:
        out.write(main)
    build(['c++', '-o', 'main', 'main.cc'] + flags + [f'-Wl,-rpath,{folder}', '-ldl'], folder)
    return compare(bench, source, ['./main'], 'nvcc -shared', folder)


def measure_stripped(bench, source):
    """Without names, and with kernels: it is refused in one line."""
    verdict = Verdict()
    program = compiled(bench, source, '-Xlinker -s')
    run = bench.dry_run(program, [], ['--device', 'A10'], keeps=False)
    verdict.equal('exit code', run.code, 3)
    verdict.expect('linked in and stripped of names' in run.words, f'refused by another line: {run.last_line}')
    verdict.cells.update({'build': 'nvcc -Xlinker -s', 'equal calls': 'refused'})
    return verdict


def linked_library(bench, major, environment):
    """A library with the static runtime of a wheel in it, and functions of its own over it."""
    packages = os.path.dirname(os.path.dirname(venvs.python_of(environment)))
    found = sorted(glob.glob(os.path.join(packages, 'lib', 'python3*', 'site-packages', 'nvidia', '*', 'lib', 'libcudart_static.a')))
    if not found:
        raise Skip(f'the environment {environment} has no libcudart_static.a')
    folder = bench.new_folder('linked')
    library = os.path.join(folder, f'liblinked.so.{major}')
    build(['cc', '-shared', '-fPIC', '-o', library, os.path.join(NATIVE, 'linked_calls.c'), f'-DMAJOR={major}', found[0],
           '-ldl', '-lrt', '-lpthread'], folder)
    return library


def measure_two(bench, order):
    """Libraries with the runtimes of CUDA 12 and 13 in them, opened in that order by one process that has no other."""
    verdict, python = Verdict(), venvs.python_of('torch-2.14.1')
    libraries = {major: linked_library(bench, major, environment) for major, environment in (('12', 'cuda12'), ('13', 'torch-2.14.1'))}
    run = bench.dry_run(python, ['try_two_runtimes.py'] + [libraries[major] for major in order], AMPLE, cwd=PROGRAMS, keeps=False)
    verdict.equal('exit code', run.code, 0)
    if run.code != 0:
        verdict.failures.append(others.refusal(run) or run.last_line)
        return verdict
    (told,) = run.told
    for key, wanted in {'majors': [int(major) for major in order], 'same_books': True, 'held': 192 * MIB, 'returned': True,
                        'properties': others.PROPERTIES}.items():
        verdict.equal(key, told[key], wanted)
    verdict.equal('peak of the device', run.report['peak_bytes'], 192 * MIB + CONTEXT_BYTES)
    verdict.cells.update({'build': 'cc -shared ... libcudart_static.a', 'time': seconds(run.seconds),
                          'peak of the device': mib(run.report['peak_bytes'])})
    return verdict


def newest_archive(bench, package):
    """The newest static runtime that PyPI has, out of the wheel of that name, and its version."""
    folder = bench.new_folder('newest')
    python = venvs.python_of('torch-2.14.1')
    done = subprocess.run([python, '-m', 'pip', 'download', '-q', '--disable-pip-version-check', '--no-input', '--no-deps', '--only-binary', ':all:',
                           '-d', folder, package], env=venvs.environment(), capture_output=True, text=True, check=False)
    wheels = glob.glob(os.path.join(folder, '*.whl'))
    if done.returncode != 0 or not wheels:
        raise Skip(f'{package}: pip says {(done.stderr.strip().splitlines() or ["nothing"])[-1]}')
    with zipfile.ZipFile(wheels[0]) as wheel:
        names = [name for name in wheel.namelist() if name.endswith('/libcudart_static.a')]
        if not names:
            raise Skip(f'{os.path.basename(wheels[0])} has no libcudart_static.a')
        return wheel.extract(names[0], folder), os.path.basename(wheels[0]).split('-')[1]


def measure_newest(bench):
    """What a new release changes in its runtime is seen here first: functions by symbols and by names are the same."""
    verdict = Verdict()
    test = os.path.join(os.path.dirname(os.path.dirname(bench.ashlar)), 'tests', 'hollow', 'audit', 'audit_test')
    if not os.path.exists(test):
        raise Skip('audit_test is not built')
    found = {package: newest_archive(bench, package) for package in ('nvidia-cuda-runtime-cu12', 'nvidia-cuda-runtime')}
    run = start([test], {'GTEST_FILTER': 'AuditEntriesTest.BothWays*', 'ASHLAR_REAL_VENVS': bench.new_folder('none'),
                         'ASHLAR_RUNTIME_ARCHIVES': os.pathsep.join(path for path, _ in found.values())})
    verdict.equal('exit code of the test', run.code, 0)
    told = {line.rsplit(': ', 1)[1]: line.rsplit(': ', 1)[0] for line in run.out.splitlines() if line.startswith('runtime ')}
    verdict.failures += [line.strip() for line in run.out.splitlines() if 'Failure' in line][:5]
    words = []
    for path, version in found.values():
        verdict.expect(path in told, f'nothing is told of {version}')
        words.append(f'{version}: {told.get(path, "")}')
    verdict.cells.update({'build': '; '.join(words), 'time': seconds(run.seconds)})
    return verdict


def row(name, run):
    return Row('nvcc', name, 15, run, is_usual=False)


def rows():
    out = [row(f'{source}, {form}', lambda bench, s=source, f=form: measure_form(bench, s, f))
           for source in ('leak', 'turns') for form in FORMS]
    out.append(row('sort, as nvcc links it', lambda bench: measure_form(bench, 'sort', 'as nvcc links it')))
    out += [row(f'leak, a library that is {how}', lambda bench, m=main, f=flags: measure_library(bench, 'leak', m, f))
            for how, main, flags in (('opened', OPENER, []), ('needed', NEEDER, ['-L.', '-lprogram']))]
    out.append(row('leak, stripped', lambda bench: measure_stripped(bench, 'leak')))
    out.append(row('the newest runtimes of CUDA 12 and 13', measure_newest))
    return out + [row(f'the runtimes of CUDA {one} and {other}, linked into two libraries',
                      lambda bench, order=(one, other): measure_two(bench, order))
                  for one, other in (('12', '13'), ('13', '12'))]
