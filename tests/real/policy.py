"""policy:ashlar under real PyTorch, as its plug-in: a training program ends where 1.02 times what it holds are left.

    tests/real/run.py --ashlar build/release/bin/ashlar --only policy

The program runs three times over the hollow device: where memory is ample, which tells what it holds; and on the small
device, under PyTorch's own allocator and under ours.
"""
import os
import re

import captures
import venvs
from plugin import UNDER_OURS, environment
from programs import HOME
from rows import Row, Verdict

CONTEXT_MIB = 500
MOST_SHARE = 1.02
KINDS = {  # of captures/train.py: flags of dry-run
    'train': [],
    'streams': captures.SIDE_STREAMS,
    'pool': [],
    'empty': [],
}
PRINTED = re.compile(r' alloc (\d+) res (\d+) retries (\d+) ooms (\d+)')


def run(bench, kind, capacity_mib, ours=False):
    """At the end: MiB allocated and reserved at the peak, retries, failures."""
    out = os.path.join(bench.new_folder('policy'), 'out.pickle')
    words = (UNDER_OURS if ours else []) + [os.path.join(captures.folder(bench), 'train.py'), kind, out]
    conf = {'ASHLAR_CONF': 'policy:ashlar', **environment(bench)} if ours else {}
    flags = ['--capacity', f'{capacity_mib}MiB', '--context', f'{CONTEXT_MIB}MiB', *KINDS[kind]]
    done = bench.dry_run(venvs.python_of(HOME), words, flags, conf, keeps=False)
    printed = PRINTED.search(done.words + done.out)
    if done.code != 0 or printed is None:
        raise RuntimeError(f'{kind}, {"ours" if ours else "native"}: ended with {done.code}: {done.last_line}')
    return tuple(map(int, printed.groups()))


def fits(bench, kind):
    verdict = Verdict()
    held, reserved, _, failures = run(bench, kind, 80 << 10)
    verdict.equal('failures where memory is ample', failures, 0)
    most = int(MOST_SHARE * held)
    _, _, _, failures_by_default = run(bench, kind, CONTEXT_MIB + most)
    _, of_ours, retries, failures_of_ours = run(bench, kind, CONTEXT_MIB + most, ours=True)
    verdict.equal('failures of policy:ashlar', failures_of_ours, 0)
    verdict.cells.update({'holds': f'{held:,} MiB', 'reserved by default': f'{reserved:,} MiB', 'device has': f'{most:,} MiB',
                          'default there': 'fails' if failures_by_default else 'ends',
                          'policy:ashlar there': f'{of_ours:,} MiB reserved, {retries} retries'})
    return verdict


def rows():
    return [Row('policy', kind, 30, lambda bench, kind=kind: fits(bench, kind)) for kind in KINDS]
