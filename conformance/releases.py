"""Other releases of PyTorch, from 2.0.1 (CUDA 11) on: programs that need nothing else."""
import fidelity
import programs
import venvs
from bench import AMPLE, PROGRAMS
from catalog import Program, positive
from rows import Row, Verdict
from sizes import mib, seconds

OTHERS = sorted(venvs.TORCH_RELEASES[1:], key=venvs.numbers)
SMALL = [
    Program('plain', ('plain.py',), {'steps': 3}),
    Program('oom', ('oom.py',), {'kept': positive, 'failures': 3}),
]


def measure(bench, release, program):
    run = bench.dry_run(venvs.python_of(f'torch-{release}'), program.command(), AMPLE, cwd=PROGRAMS)
    verdict = Verdict()
    programs.expect_told(program, run, verdict)
    for line in run.told:
        verdict.cells.update({'version': line['torch'], 'time': seconds(run.seconds),
                              'allocated': mib(line['peak_allocated']), 'reserved': mib(line['peak_reserved'])})
    fidelity.expect_all(bench, run, verdict)
    return verdict


def rows(of_releases):
    return [Row('releases', f'{release} {p.name}', 8, lambda bench, r=release, p=p: measure(bench, r, p),
                is_usual=False) for release in of_releases if release in OTHERS for p in SMALL]
