"""The cases that FakeGPU publishes with what a real GPU showed, rebuilt from its description; our figures beside.

The GPU is an NVIDIA RTX PRO 5000 72GB Blackwell, the figures of July 2026: PyTorch 2.9.1 for Qwen3-8B, 2.8.0 for
Qwen3.5, transformers 5.12.1. Ours are of 2.14.1, told to take cuBLAS's workspace in the size that those take by
themselves. What is published with three places after the point is known to 0.05 %.
"""
import dataclasses
import os

import programs
import venvs
from bench import PROGRAMS
from catalog import torchrun
from rows import Row, Verdict

WORKSPACE = {'CUBLAS_WORKSPACE_CONFIG': ':4096:2:16:8'}
PROFILE = ('name=NVIDIA RTX PRO 5000 72GB Blackwell\ntotal_bytes=77309411328\ncompute_major=12\ncompute_minor=0\n')
MOST_ERROR = 0.5  # percent of what the GPU showed
GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    arguments: tuple
    really: float  # bytes
    theirs: str  # its error in percent: of the analysis, and of the run on the CPU where there is one
    key: str = 'peak'  # of the line that the program tells
    ranks: int = 0
    venv: str = 'transformers-5'


def sft(size, method, length, really, theirs, *more):
    name = ' '.join((f'Qwen3.5-{size}, {method}, length {length}',) + more)
    return Case(name, ('qwen35_sft.py', size, method, str(length)) + more, really * GIB, theirs)


def sharded(kind, ranks, length, really, theirs):
    name = f'Qwen3.5-0.8B, {kind}{", LoRA" if kind == "fsdp2" else ""}, {ranks} ranks, length {length}'
    return Case(name, ('qwen35_sharded.py', kind, str(length)), really * GIB, theirs, ranks=ranks)


QWEN3 = ('qwen3_8b.py',)
CHECKPOINTING, ACCUMULATION = 'checkpointing', 'accumulation'
CASES = [
    Case('Qwen3-8B, weights on the device', QWEN3, 16_383_586_816, '0.013', 'loaded', venv=programs.HOME),
    Case('Qwen3-8B, peak of two tokens', QWEN3, 16_396_630_528, '0.067 / 0.065', 'generating', venv=programs.HOME),
    sft('0.8B', 'full', 16, 6.626, '0.989 / 0.985', ACCUMULATION),
    sft('0.8B', 'full', 128, 6.687, '1.121 / 1.119'),
    sft('0.8B', 'full', 128, 6.679, '1.006 / 1.006', CHECKPOINTING),
    sft('0.8B', 'lora', 16, 1.756, '1.921 / 2.439'),
    sft('0.8B', 'lora', 128, 2.696, '1.271'),
    sft('0.8B', 'lora', 128, 1.876, '1.506', CHECKPOINTING),
    sft('2B', 'full', 16, 15.939, '0.102', ACCUMULATION),
    sft('2B', 'lora', 16, 3.868, '0.266 / 0.500'),
    sft('2B', 'lora', 128, 4.959, '0.359'),
    sft('2B', 'lora', 128, 3.974, '0.281', CHECKPOINTING),
    sft('0.8B', 'qlora', 16, 1.072, '0.698 / 0.150'),
    sft('0.8B', 'qlora', 128, 2.007, '0.628'),
    sft('0.8B', 'qlora', 128, 1.192, '1.085', CHECKPOINTING),
    sft('2B', 'qlora', 16, 2.039, '1.386'),
    sft('2B', 'qlora', 128, 2.136, '1.689', CHECKPOINTING),
    sft('0.8B', 'nested', 16, 1.051, '0.700 / 0.165'),
    sft('0.8B', 'nested', 128, 1.986, '0.629'),
    sft('0.8B', 'nested', 128, 1.171, '1.094', CHECKPOINTING),
    sft('2B', 'nested', 16, 1.979, '1.422'),
    sft('2B', 'nested', 128, 2.077, '1.732', CHECKPOINTING),
    sharded('fsdp', 2, 16, 3.308, '0.730'),
    sharded('fsdp', 2, 128, 3.357, '0.633'),
    sharded('fsdp2', 2, 16, 1.961, '1.881'),
    sharded('fsdp2', 4, 16, 1.593, '0.487'),
    sharded('fsdp2', 4, 64, 1.801, '1.881'),
    sharded('fsdp2', 2, 128, 2.689, '0.106'),
    sharded('fsdp2', 4, 128, 2.324, '0.071'),
]
# Of what is allocated and reserved after each of the fifteen stages: what the rules of PyTorch's allocator say.
KIB, MIB = 1 << 10, 1 << 20
STAGES = [[256 * KIB, 2 * MIB], [768 * KIB, 2 * MIB], [512 * KIB, 2 * MIB], [640 * KIB, 2 * MIB], [128 * KIB, 2 * MIB],
          [0, 2 * MIB], [0, 0], [3 * MIB, 20 * MIB], [7 * MIB, 20 * MIB], [4 * MIB, 20 * MIB], [0, 20 * MIB], [0, 0],
          [12 * MIB, 12 * MIB], [0, 12 * MIB], [0, 0]]


def dry_run(bench, case):
    profile = os.path.join(bench.new_folder('profile'), 'card')
    with open(profile, 'w', encoding='utf-8') as out:
        out.write(PROFILE)
    flags = ['--profile', profile] + (['--devices', str(case.ranks)] if case.ranks else [])
    return bench.once((case.arguments, case.ranks), lambda: bench.dry_run(
        venvs.python_of(case.venv), torchrun(case.ranks) + list(case.arguments), flags, WORKSPACE, cwd=PROGRAMS))


def measure(bench, case):
    run, verdict = dry_run(bench, case), Verdict()
    verdict.equal('exit code', run.code, 0)
    verdict.equal('processes that told', len(run.told), case.ranks or 1)
    if verdict.failures:
        return verdict
    ours = max(line[case.key] for line in run.told)
    error = 100 * abs(ours - case.really) / case.really
    verdict.expect(error <= MOST_ERROR, f'{error:.3f} % off what the GPU showed')
    is_exact = case.really == int(case.really)
    verdict.cells.update({
        'really': f'{int(case.really):,} B' if is_exact else f'{case.really / GIB:.3f} GiB',
        'FakeGPU, error': f'{case.theirs} %',
        'ours': f'{ours:,} B' if is_exact else f'{ours / GIB:.3f} GiB',
        'ours, error': f'{error:.3f} %',
    })
    return verdict


def stages(bench):
    run = bench.dry_run(venvs.python_of(programs.HOME), ['fifteen_stages.py'], ['--capacity', '80GiB'], cwd=PROGRAMS)
    verdict = Verdict()
    held = run.told[0]['held'] if run.told else []
    for i, (got, wanted) in enumerate(zip(held, STAGES)):
        verdict.equal(f'stage {i + 1}', got, wanted)
    verdict.equal('stages', len(held), len(STAGES))
    verdict.cells['FakeGPU, error'] = 'allocated 0, reserved within 2 MiB'
    verdict.cells['ours, error'] = 'both 0 at every stage'
    return verdict


def rows():
    out = [Row('published', 'fifteen stages', 6, stages)]
    return out + [Row('published', case.name, 12, lambda bench, c=case: measure(bench, c),
                      is_usual=case.venv == programs.HOME) for case in CASES]
