"""What PyTorch 2.14.1 itself reported of the recorded script at 80 GiB under other settings, against the twin.

The twin replays the recording, and what is recorded here; the script then really runs under the setting.
"""
import os

import captures
import venvs
from rows import Row, Verdict

REPORTED = {  # setting -> peak reserved in MiB, from the README.md of the recordings
    'max_split_size_mb:64': 63_646,
    'max_split_size_mb:128': 60_330,
    'max_split_size_mb:256': 59_748,
    'max_split_size_mb:512': 51_776,
    'roundup_power2_divisions:4': 21_058,
    'expandable_segments:True': 17_684,
}
CAPACITY = 80 << 30


def train(bench, conf):
    def make():
        script = os.path.join(captures.folder(bench), 'train.py')
        flags = ['--capacity', str(CAPACITY), '--context', captures.CONTEXT] + (['--conf', conf] if conf else [])
        own = os.path.join(bench.new_folder('reported'), 'own.pickle')
        return own, bench.dry_run(venvs.python_of('torch-2.14.1'), [script, 'train', own], flags)

    return bench.once(('reported', conf), make)


def measure(bench, conf):
    verdict = Verdict()
    recording = os.path.join(captures.folder(bench), 'torch-2.14.1_default.pickle.gz')
    flags = ['--cold', '--capacity', str(CAPACITY), '--context', captures.CONTEXT, '--conf', conf]
    peaks = {'reported': REPORTED[conf]}
    for name, history in (('replay of the recording', recording), ('replay of ours', train(bench, '')[0])):
        peaks[name] = bench.replay(history, *flags)['peak_reserved'] / 2**20
    peaks['run here'] = train(bench, conf)[1].torch()['peak_reserved_bytes'] / 2**20
    for name, peak in peaks.items():
        verdict.equal(name, peak, REPORTED[conf])
        verdict.cells[name] = f'{peak:,.0f} MiB'
    return verdict


def rows():
    return [Row('reported', conf, 8, lambda bench, c=conf: measure(bench, c)) for conf in REPORTED]
