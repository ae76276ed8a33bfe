"""Which card is enough: the table that a dry run without a device prints, against real runs on the cards at its border.

The three cards are those whose memory is nearest to what the program reserves in ample room. The table replays the
history of a run as a card of the same compute capability at the size of each; a run on the card itself may take other
workspaces. Two programs are compared on a card whose kernels are not those of an A100.
"""
import os

import captures
import programs
import venvs
from bench import PROGRAMS
from rows import Row, Verdict
from sizes import mib

SETTINGS = {'default': '', 'expandable': 'expandable_segments:True'}


def lora(_):
    return [os.path.join(PROGRAMS, 'llama8b_lora.py')]


def train(bench):
    return [os.path.join(captures.folder(bench), 'train.py'), 'train', os.path.join(bench.new_folder('cards'), 'own')]


def resnet(_):
    return [os.path.join(PROGRAMS, 'resnet50.py'), '256']


def gpt(_):
    return [os.path.join(PROGRAMS, 'gpt_bf16.py'), '16']


def trainer(_):
    return [os.path.join(PROGRAMS, 'gpt2_trainer.py')]


OTHERS = {('GPT in bf16', 'V100-32GB'): gpt, ('gpt2_trainer', 'T4'): trainer}
TRIED = {'Llama-3-8B, LoRA': lora, 'train.py of the captures': train, 'ResNet-50, batch 256': resnet}


def start(bench, program, flags):
    python = venvs.python_of(programs.HOME)
    return bench.dry_run(python, program(bench), ['--reproducible'] + flags, cwd=PROGRAMS)


def dry_run(bench, program, flags):
    return start(bench, TRIED[program], flags)


def table(bench, program):
    def make():
        run = dry_run(bench, program, ['--cards', 'near'])
        if not run.report or not run.report['cards']:
            raise RuntimeError(f'no table of cards: it ended with {run.code}: {run.last_line}')
        needed = run.torch()['peak_reserved_bytes']
        rows = [row for row in run.report['cards']['rows'] if row['has_verdict']]
        return sorted(rows, key=lambda row: abs(row['allocator_bytes'] - needed))[:3]

    return bench.once(('cards', program), make)


def headroom(outcome):
    return mib(outcome['headroom_bytes']) if outcome['fits'] else f'fails at {outcome["failed_at"]}'


def really(run):
    """By PyTorch's own count: pages that it maps in vain, before it gives its cache back, are the device's alone."""
    if run.torch()['ooms'] > 0:
        return 'fails'
    machine = run.report['machine']
    return mib(machine['total']['bytes'] - machine['context']['bytes'] - run.torch()['peak_reserved_bytes'])


def compare(bench, program, nearest):
    """One card, under each setting."""
    row = sorted(table(bench, program), key=lambda one: one['total_bytes'])[nearest]
    verdict = Verdict()
    verdict.cells['card'] = row['card']
    for name, conf in SETTINGS.items():
        run = dry_run(bench, program, ['--device', row['card']] + (['--conf', conf] if conf else []))
        if run.torch() is None:
            verdict.failures.append(f'{name}: it ended with {run.code}: {run.last_line}')
            continue
        verdict.expect(run.code == 0 or not row[name]['fits'], f'{name}: it ended with {run.code}: {run.last_line}')
        verdict.equal(f'{name}: fits on {row["card"]}', row[name]['fits'], run.torch()['ooms'] == 0)
        verdict.cells[f'{name}, foretold'] = headroom(row[name])
        verdict.cells[f'{name}, really'] = really(run)
    return verdict


def compare_kernels(bench, program, card):
    """The row of a card that takes other kernels than an A100, and a run on it."""
    verdict = Verdict()
    told = start(bench, OTHERS[program, card], ['--cards', card])
    row = next(row for row in told.report['cards']['rows'] if row['card'] == card)
    verdict.expect(row['has_verdict'], f'no verdict: {told.report["cards"]["runs"]}')
    run = start(bench, OTHERS[program, card], ['--device', card])
    verdict.equal(f'fits on {card}', row['default']['fits'], run.torch()['ooms'] == 0)
    verdict.cells['card'] = card
    verdict.cells['default, foretold'] = headroom(row['default'])
    verdict.cells['default, really'] = really(run)
    verdict.equal('headroom', verdict.cells['default, foretold'], verdict.cells['default, really'])
    return verdict


def rows():
    others = [Row('cards', f'{program} on {card}', 60, lambda bench, p=program, c=card: compare_kernels(bench, p, c))
              for program, card in OTHERS]
    return others + [Row('cards', f'{program}, card {i + 1} of 3', 40, lambda bench, p=program, i=i: compare(bench, p, i))
            for program in TRIED for i in range(3)]
