"""Models that are larger than the machine: within 20 s and 2 GB of its memory each.

On a machine whose processors others keep busy the processors' own time is judged: a run alone takes no longer, as the
work is one thread's.
"""
import os

import fidelity
import programs
import venvs
from bench import PROGRAMS
from catalog import Program
from rows import Row, Verdict
from sizes import gb, gib, seconds

MOST_SECONDS = 20
MOST_HOST_BYTES = 2e9
BIG = [
    Program('Llama-3-70B, generate 8 tokens on 4 x 1,024', ('llama70b_generate.py',),
            {'shape': [4, 1032], 'weights': 70_553_706_496}),
    Program('Llama-3-8B, LoRA, 8-bit AdamW, checkpointing, 2 x 2,048', ('llama8b_lora.py',),
            {'steps': 2, 'weights': 8_037_076_992}),
]


def measure(bench, program):
    run = bench.dry_run(venvs.python_of(programs.HOME), program.command(), ['--capacity', '180GiB'], cwd=PROGRAMS)
    verdict = Verdict()
    programs.expect_told(program, run, verdict)
    verdict.cells['time'] = seconds(run.seconds)
    verdict.cells['host memory'] = gb(run.host_bytes)
    verdict.cells['processor time'] = seconds(run.processor_seconds)
    is_busy = os.getloadavg()[0] > os.cpu_count()
    taken = run.processor_seconds if is_busy else run.seconds
    verdict.expect(taken <= MOST_SECONDS, f'it takes more than {MOST_SECONDS} s')
    verdict.cells['load'] = f'{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores'
    verdict.expect(run.host_bytes <= MOST_HOST_BYTES, f'it takes more than {gb(MOST_HOST_BYTES)} of host memory')
    for line in run.told:
        verdict.cells.update({'allocated': gib(line['peak_allocated']), 'reserved': gib(line['peak_reserved'])})
    fidelity.expect_all(bench, run, verdict)
    return verdict


def rows():
    return [Row('big', p.name, 20, lambda bench, p=p: measure(bench, p), is_alone=True) for p in BIG]
