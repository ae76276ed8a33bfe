"""The same program under PyTorch's own allocator and under ours, by PyTorch's class for allocators and as its plug-in: the
same calls on device memory, in the same order, with the same sizes at the same addresses; the same failures; the same peaks.

    tools/test real --only plugin

`ashlar dry-run --calls` tells the calls. Programs are unchanged: `python -m ashlar_gpu.torch PROGRAM` installs ours first.
"""
import collections
import glob
import itertools
import os

import captures
import fidelity
import histories
import programs
import venvs
from bench import AMPLE, HERE, PROGRAMS
from catalog import PROGRAMS as CATALOG
from catalog import Program, torchrun
from programs import HOME
from rows import Row, Skip, Verdict
from sizes import mib

ROOT = os.path.dirname(HERE)
RELEASES = [release for release in venvs.TORCH_RELEASES if venvs.numbers(release) >= (2, 6)]  # the plug-in's first
UNDER_OURS = ['-m', 'ashlar_gpu.torch']
# Of captures.CASES, which has their settings.
CASES = ['train', 'default_oom', 'split128_oom', 'split512', 'expandable', 'gc', 'gcsplit', 'roundup', 'streams',
         'streams_exp', 'pool', 'empty', 'empty_descending', 'fraction']
MORE = {  # of settings that no capture has: (the script's first argument, capacity in GiB, setting)
    'gc_limit': ('train', 24, 'garbage_collection_threshold:0.6,per_process_memory_fraction:0.9'),
    'rejected': ('train', 24, 'per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True'),
    'large_segment': ('train', 24, 'large_segment_size_mb:64'),
    'non_split': ('train', 20, 'max_split_size_mb:128,max_non_split_rounding_mb:64'),
    'roundup_list': ('train', 24, 'roundup_power2_divisions:[256:1,512:2,1024:4,>:8]'),
    'expandable_pool': ('pool', 16, 'expandable_segments:True'),
    'expandable_empty': ('empty', 16, 'expandable_segments:True'),
}
WITH_MORE = ('2.14.1', '2.15.0')  # earlier releases lack some of these keys
BY_CLASS = (2, 12)  # the first release whose class ours is one of (python/ashlar_gpu/_torch_native.py); a plug-in before
PLUGGED = ['train', 'split128_oom', 'expandable', 'streams', 'pool']  # of CASES, as a plug-in too


def environment(bench, interface='pluggable'):
    prefix = os.path.dirname(os.path.dirname(bench.ashlar))
    if not glob.glob(os.path.join(prefix, 'lib*', 'libashlar_torch.so')):
        raise Skip('libashlar_torch.so is not built')
    return {'PYTHONPATH': os.path.join(ROOT, 'python'), 'ASHLAR_PREFIX': prefix, 'ASHLAR_TORCH_INTERFACE': interface}


def calls_of(folder):
    """The calls of each process, by content: which process is which rank is not told."""
    out = []
    for path in glob.glob(os.path.join(folder, 'calls.*')):
        with open(path, encoding='utf-8') as lines:
            out.append(lines.read().splitlines())
    return sorted(calls for calls in out if calls)


def run(bench, python, program, flags, ours, cwd=None, most_seconds=300, needs=None):
    """(the run, its processes' calls). `program`: (what goes before, the script with its arguments). `ours`: how PyTorch calls
    ours, None: its own."""
    before, script = program
    folder = bench.new_folder('calls')
    words = before + (UNDER_OURS if ours else []) + script
    fresh = {'TORCHINDUCTOR_CACHE_DIR': folder, 'TRITON_CACHE_DIR': folder}  # what was compiled before asks for less
    done = bench.dry_run(python, words, flags + ['--calls', os.path.join(folder, 'calls.%p')],
                         {**fresh, **(environment(bench, ours) if ours else needs or {})}, most_seconds, cwd)
    return done, calls_of(folder)


def expect_same_calls(native, ours, verdict):
    verdict.equal('processes with calls', len(ours), len(native))
    for left, right in zip(native, ours):
        difference = histories.first_difference(left, right)
        verdict.expect(difference is None, f"calls: PyTorch's own and ours differ at {difference}")
    verdict.expect(any(native), 'no calls were seen')
    total = sum(map(len, native))
    counts = collections.Counter(line.split()[0] for calls in native for line in calls)
    verdict.cells['calls'] = f'{total:,}'
    verdict.cells['of them'] = ', '.join(f'{count:,} {name}' for name, count in sorted(counts.items()))


def expect_same_words(native, ours, verdict, keys):
    """What the programs tell of themselves; `keys` of it, one line a process."""
    left, right = (sorted(tuple(line.get(key) for key in keys) for line in one.told) for one in (native, ours))
    verdict.expect(left == right, f'{", ".join(keys)}: {left} and {right}')


TOLD = ('peak_allocated', 'peak_reserved', 'num_alloc_retries', 'num_ooms')


def of_case(bench, release, case):
    """(the script's first argument, the setting, flags of dry-run)"""
    if case in captures.CASES:
        kind, _, conf, _ = captures.CASES[case]
        return kind, conf, captures.machine(release, case)
    kind, capacity, conf = MORE[case]
    return kind, conf, ['--capacity', f'{capacity}GiB', '--context', captures.CONTEXT, '--conf', conf]


def capture(bench, release, case, interface):
    """One of the cases of the recorded captures; train.py prints its peaks, and writes the text of a failure."""
    shared, python = captures.folder(bench), venvs.python_of(f'torch-{release}')
    verdict, printed, failed, calls = Verdict(), [], [], []
    kind, conf, flags = of_case(bench, release, case)
    for ours in (None, interface):
        out = os.path.join(bench.new_folder('capture'), 'own.pickle')
        script = [os.path.join(shared, 'train.py'), kind, out]
        done, its_calls = run(bench, python, ([], script), flags, ours)
        if not ours and done.code != 0 and 'nvmlDeviceGetGpuFabricInfoV' in done.last_line:
            raise Skip('PyTorch itself ends: it expects nvmlDeviceGetGpuFabricInfoV to succeed, as it does from sm90 on')
        verdict.expect(done.code == 0, f'{"ours" if ours else "native"} ended with {done.code}: {done.last_line}')
        printed.append([line for line in (done.words + done.out).splitlines() if line.startswith(script[1] + ' alloc ')])
        failed.append(os.path.exists(out + '.txt'))
        calls.append(its_calls)
    verdict.cells['setting'] = conf or '–'
    if verdict.failures:
        return verdict
    expect_same_calls(*calls, verdict)
    verdict.equal('whether it fails', failed[1], failed[0])
    verdict.expect(printed[0] == printed[1] and printed[0], f'peaks: {printed[0]} and {printed[1]}')
    if interface == 'native':
        fidelity.expect_all(bench, done, verdict)
    verdict.cells['fails'] = 'both' if all(failed) else 'neither' if not any(failed) else 'one'
    return verdict


def program(bench, of, release=HOME.removeprefix('torch-'), devices=0, interface='native', is_replayed=True, conf=''):
    """One of the catalog's, or of those above. `is_replayed`: requests say all that decides where a block lies."""
    python = venvs.python_of(f'torch-{release}')
    devices = ['--devices', str(devices or of.ranks)] if devices or of.ranks else []
    command = (torchrun(of.ranks), list(of.arguments))
    flags = AMPLE + devices + (['--conf', conf] if conf else [])
    native, ours = (run(bench, python, command, flags, ours, PROGRAMS) for ours in (None, interface))
    verdict = Verdict()
    for name, (done, _) in (('native', native), ('ours', ours)):
        verdict.expect(done.code == 0, f'{name} ended with {done.code}: {done.last_line}')
    if verdict.failures:
        return verdict
    expect_same_calls(native[1], ours[1], verdict)
    expect_same_words(native[0], ours[0], verdict, TOLD + tuple(of.did))
    verdict.cells['reserved'] = mib(max(line['peak_reserved'] for line in ours[0].told))
    if interface == 'native' and is_replayed:
        fidelity.expect_addresses(bench, ours[0], verdict)
    return verdict


def told_to_cpp(bench, conf):
    """Each scene of programs/torch_told.py, told by PyTorch's own allocator and by ours."""
    python, flags = venvs.python_of(HOME), AMPLE + (['--conf', conf] if conf else [])
    (own, calls), (ours, our_calls) = (run(bench, python, ([], ['torch_told.py']), flags, ours, PROGRAMS)
                                       for ours in (None, 'native'))
    verdict = Verdict()
    for name, done in (("PyTorch's own", own), ('ours', ours)):
        verdict.expect(done.code == 0 and done.told, f'{name} ended with {done.code}: {done.last_line}')
    if verdict.failures:
        return verdict
    expect_same_calls(calls, our_calls, verdict)
    left, right = own.told[0], ours.told[0]
    verdict.equal('scenes', sorted(right['answers']), sorted(left['answers']))
    for scene, rows_of_own in left['answers'].items():
        pairs = itertools.zip_longest(rows_of_own, right['answers'].get(scene, []))
        different = next(((one, other) for one, other in pairs if one != other), None)
        verdict.expect(different is None, f'{scene}: own and ours {different}')
    verdict.cells.update({f'told by {kind}': count for kind, count in left['counts'].items()})
    return verdict


def memory(bench, release):
    """Each question of programs/torch_memory.py, of PyTorch's own allocator and of ours by its class."""
    python, script = venvs.python_of(f'torch-{release}'), ([], ['torch_memory.py'])
    (own, _), (ours, _) = (run(bench, python, script, AMPLE, ours, PROGRAMS) for ours in (None, 'native'))
    verdict = Verdict()
    for name, done in (("PyTorch's own", own), ('ours', ours)):
        verdict.expect(done.code == 0 and done.told, f'{name} ended with {done.code}: {done.last_line}')
    if verdict.failures:
        return verdict
    left, right = own.told[0]['answers'], ours.told[0]['answers']
    for question, answer in left.items():
        verdict.expect(right.get(question) == answer, f'{question}: {str(answer)[:300]} and ours {str(right.get(question))[:300]}')
    verdict.equal('questions', sorted(right), sorted(left))
    verdict.expect(len(left) >= 34, f'{len(left)} questions were asked')
    verdict.cells['questions'] = str(len(left))
    verdict.text = '\n'.join(['| of PyTorch | own | ours |', '|---|---|---|'] +
                             [f'| {question} | {"fails: " + answer if isinstance(answer, str) else "yes"} | '
                              f'{"the same" if right.get(question) == answer else "**differs**"} |'
                              for question, answer in left.items()])
    return verdict


TREES = Program('torch_trees', ('torch_trees.py',), {'replays': 6, 'restored': min, 'has_trees': True}, 40)
SHARED = Program('torch_shared', ('torch_shared.py',), {'seen': True, 'exit_code': 0, 'left': 0}, 30)
SHARED_PAGES = Program('torch_shared pages', ('torch_shared.py', 'pages'), SHARED.did, 30)
SHARED_WITH_OWN = Program('torch_shared own', ('torch_shared.py', 'own'), SHARED.did, 30)
CAPTURES = Program('torch_captures', ('torch_captures.py',), {'answers': dict}, 40)
OWN_POOLS = Program('torch_own_pools', ('torch_own_pools.py',), {'answers': dict, 'asked': min, 'given_back': min}, 40)
ADDRESSES = Program('torch_addresses', ('torch_addresses.py',), {'served': 40, 'answers': list, 'history': list}, 40)
TWO_DEVICES = Program('two_devices', ('two_devices.py',), {'reserved': min, 'allocated': min})
OFFERS = [
    Program('ashlar_offers', ('ashlar_offers.py',), {'checks': 35}),
    Program('ashlar_mempool', ('ashlar_mempool.py',), {'own_words': True, 'given_back': 70 << 20, 'left': 0}),
    Program('ashlar_pools', ('ashlar_pools.py',), {'checks': 8}),
    Program('ashlar_pools segments', ('ashlar_pools.py', 'segments'), {'checks': 3}),
    Program('torch_told sleep', ('torch_told.py', 'sleep'), {'pages': 1}, 40),
    Program('ashlar_compile', ('ashlar_compile.py',), {'replays': 4, 'trees': False}, 40),
]


def offer(bench, of, release):
    """What only ours is asked: the program judges it, and tells how much it has judged."""
    flags = AMPLE + ['--devices', '2']
    done, calls = run(bench, venvs.python_of(f'torch-{release}'), ([], list(of.arguments)), flags, False, PROGRAMS,
                      needs=environment(bench))
    verdict = Verdict()
    programs.expect_told(of, done, verdict)
    verdict.cells['calls'] = f'{sum(map(len, calls)):,}'
    return verdict


def usual(release):
    """How PyTorch of this release calls ours, where it is not said."""
    return 'native' if venvs.numbers(release) >= BY_CLASS else 'pluggable'


def rows(releases):
    out = [Row('plugin', f'{release} {case}', 16, lambda bench, r=release, c=case: capture(bench, r, c, usual(r)),
               is_usual=release == '2.14.1') for release in releases if release in RELEASES
           for case in CASES + (list(MORE) if release in WITH_MORE else [])]
    out += [Row('plugin', f'{release} {case} as a plug-in', 16,
                lambda bench, r=release, c=case: capture(bench, r, c, 'pluggable'), is_usual=release == '2.14.1')
            for release in releases if release in RELEASES and usual(release) == 'native' for case in PLUGGED]
    out += [Row('plugin', f'{release} memory', 30, lambda bench, r=release: memory(bench, r), is_usual=release == '2.14.1')
            for release in releases if release in RELEASES and usual(release) == 'native']
    out += [Row('plugin', f'2.14.1 {p.name}', 2 * p.seconds, lambda bench, p=p: program(bench, p)) for p in (TREES, SHARED)]
    out += [Row('plugin', ' '.join(filter(None, ('2.14.1', p.name, conf))), 2 * p.seconds,
                lambda bench, p=p, conf=conf: program(bench, p, is_replayed=False, conf=conf))
            for p, conf in ((ADDRESSES, ''), (CAPTURES, ''), (OWN_POOLS, ''), (OWN_POOLS, 'expandable_segments:True'),
                            (SHARED_WITH_OWN, ''), (SHARED_PAGES, 'expandable_segments:True'))]
    out += [Row('plugin', ' '.join(filter(None, ('2.14.1 torch_told', conf))), 80, lambda bench, conf=conf: told_to_cpp(bench, conf))
            for conf in ('', 'expandable_segments:True')]
    out += [Row('plugin', f'{release} {p.name}', 2 * p.seconds, lambda bench, r=release, p=p: offer(bench, p, r),
                is_usual=release == '2.14.1') for release in releases if release in RELEASES for p in OFFERS]
    out += [Row('plugin', f'{release} two_devices', 16, lambda bench, r=release: program(bench, TWO_DEVICES, r, 2, usual(r)),
                is_usual=release == '2.14.1') for release in releases if release in RELEASES]
    return out + [Row('plugin', f'2.14.1 {p.name}', 2 * p.seconds, lambda bench, p=p: program(bench, p)) for p in CATALOG]
