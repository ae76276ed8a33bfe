"""What the client programs of the C++ integrations must show over the hollow device: a function a client, which returns what it
measured, as text, and raises Differs with what did not hold.

Each runs a program without the integration and with it, and compares the calls on device memory.
"""
import os

from clients import BEHIND_A_MACRO, CLIENTS, EXAMPLES, Failed, cuda_home

LAG = ['--lag', 'time:1000000000']  # work of a stream is done a second after it was given, or when it is waited for


class Differs(Failed):
    pass


def expect(held, run, what):
    if not held:
        raise Differs(f'{what}; it printed: {run.words[:1500]}')


def fewer_calls(tools, program, kept, environment=None):
    """Runs it without the integration and with it: both keep their numbers, and the integration asks the device seldom."""
    plain, integration = (tools.run(program, [word], environment=environment) for word in ('plain', 'ashlar'))
    for run in (plain, integration):
        expect(run.code == 0 and kept in run.words, run, f'it did not say "{kept}"')
    expect(plain.allocations >= 100, plain, f'without the integration it made {plain.allocations} device allocations')
    expect(0 < integration.allocations * 20 <= plain.allocations, integration,
           f'{integration.allocations} device allocations with the integration, {plain.allocations} without')
    return f'{plain.allocations} device allocations without, {integration.allocations} with'


def without_exceptions(tools):
    """The C++20 face is compiled so; it is not linked, since it is not in libashlar.so."""
    source = os.path.join(CLIENTS, 'without_exceptions.cc')
    for flags in (['-fno-exceptions'], ['-fno-exceptions', '-fno-rtti'], []):
        tools.cxx(source, standard='c++20', flags=[*flags, '-Wno-conversion', '-Wno-shadow'], name='without_exceptions')
    return 'every header compiles without exceptions and run-time types'


def thrust(tools):
    return fewer_calls(tools, tools.nvcc(os.path.join(EXAMPLES, 'thrust.cu')), 'kept in 100 of 100 rounds')


def cub(tools):
    return fewer_calls(tools, tools.nvcc(os.path.join(EXAMPLES, 'cub.cu')), 'sorted in 100 of 100 rounds')


def cuda_mr(tools, headers=(), version=''):
    """`headers`: a folder of CCCL that goes before the toolkit's, whose CCCL_VERSION is `version`."""
    program = tools.nvcc(os.path.join(EXAMPLES, 'cuda_mr.cu'), headers, name=f'cuda_mr{version}')
    return fewer_calls(tools, program, f'CCCL {version}' if version else 'kept in 100 of 100 rounds')


def cub_scenarios(tools):
    """CUB's own class passes them, and so does ours. That they can fail is shown by a device whose work is done at once:
    there CUB hands a block to another stream."""
    program = tools.nvcc(os.path.join(CLIENTS, 'cub_scenarios.cu'))
    small = ['--capacity', '1GiB', '--context', '100MiB', '--devices', '2']
    checks = 0
    for word in ('cub', 'ashlar'):
        run = tools.run(program, [word], small + LAG)
        expect(run.code == 0 and "0 of the scenarios' checks failed" in run.words, run, f'{word} fails scenarios')
        checks = run.words.count('ok: ')
        expect(checks >= 28, run, f'{checks} checks were made')
    at_once = tools.run(program, ['cub'], small)
    expect('FAILS: another stream does not have it' in at_once.words, at_once, 'no work was pending, and nobody noticed')
    return f'{checks} checks of scenarios hold for both classes'


def by_libcxx(tools):
    """clang with its own standard library, on host memory and on GPU 0."""
    tools.need_libcxx()
    program = tools.cxx(os.path.join(EXAMPLES, 'handle.cc'), 'clang++', flags=['-stdlib=libc++'], name='handle_libcxx')
    for arguments in ([], ['gpu']):
        run = tools.run(program, arguments)
        expect(run.code == 0 and '1000 requests took 5 device calls' in run.words, run, 'it did not serve')
        expect('out of memory: 1024.00 TiB requested' in run.words, run, 'the text of its error is lost')
    return f'1000 requests, {run.allocations} device allocations'


def onnxruntime_addresses(tools):
    """The functions that ONNX Runtime takes, called as it calls them."""
    program = tools.cxx(os.path.join(CLIENTS, 'onnxruntime_addresses.cc'))
    run = tools.run(program, flags=['--capacity', '16GiB', '--devices', '2'])
    expect(run.code == 0 and run.words.count('ok: ') == 13, run, 'checks failed')
    expect(run.words.count('ashlar: out of memory: 1024.00 TiB requested') == 2, run, 'the reason of NULL is not told')
    return f'{run.words.count("ok: ")} checks hold'


def rmm_flags(version):
    return [BEHIND_A_MACRO] if version < '26.02' else []


def rmm_found(librmm, logger, version):
    """Where its headers and libraries are, as Tools.cxx takes them, and the folder of its logger's library."""
    root = cuda_home()
    headers = [os.path.join(librmm, 'include', 'rapids'), os.path.join(librmm, 'include'),
               os.path.join(logger, 'include'), os.path.join(root, 'include')]
    folders = [os.path.join(librmm, 'lib64'), os.path.join(logger, 'lib64'), os.path.join(root, 'lib64')]
    links = [word for folder in folders for word in ('-L', folder, f'-Wl,-rpath,{folder}')] + ['-lrmm', '-lcudart']
    links.append(f'-Wl,-rpath-link,{folders[1]}')
    standard = 'c++20' if version >= '26.10' else 'c++17'
    return {'headers': headers, 'standard': standard, 'flags': rmm_flags(version), 'libraries': links}, folders[1]


def rmm(tools, librmm, logger, version):
    """What RMM's headers do; its library brings a CUDA runtime of its own, which is not served here."""
    found, logger_library = rmm_found(librmm, logger, version)
    tools.cxx(os.path.join(EXAMPLES, 'rmm.cc'), name=f'rmm-{version}', **found)  # compiled and linked, not run
    program = tools.cxx(os.path.join(CLIENTS, 'rmm_headers.cc'), name=f'rmm_headers-{version}', **found)
    run = tools.run(program, environment={'LD_LIBRARY_PATH': logger_library})
    expect(run.code == 0 and f'RMM {version}:' in run.words and ' 0 checks failed' in run.words, run, 'checks failed')
    return f'{run.words.count("ok: ")} checks hold, {run.allocations} device allocations'


def rmm_log(tools, librmm, logger, version, log):
    """RMM's logging_resource_adaptor writes `log`; what was asked, in the program's words."""
    found, logger_library = rmm_found(librmm, logger, version)
    program = tools.cxx(os.path.join(CLIENTS, 'rmm_log.cc'), name=f'rmm_log-{version}', **found)
    run = tools.run(program, [log], environment={'LD_LIBRARY_PATH': logger_library})
    expect(run.code == 0 and f'RMM {version}:' in run.words and os.path.exists(log), run, 'it wrote no log')
    return next(line for line in run.words.splitlines() if line.startswith('RMM '))
