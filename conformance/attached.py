"""ashlar attach: programs of conformance/programs, started without us, are asked in the middle of their run, and end as they do alone.

The program runs over the hollow device, given by hand. It is asked until it has used CUDA and answers; what it then holds must
have names, and what it tells at its end must be what it tells when nobody has asked.
"""
import os
import subprocess
import time

import histories
import venvs
from bench import PROGRAMS, start
from catalog import PROGRAMS as CATALOG
from programs import HOME
from recording import hollow_by_hand
from rows import Row, Verdict
from sizes import mib

# None whose loop ends by a value of the device: outside of a dry run nobody knows it.
ASKED = ('resnet50', 'graphs', 'lora', 'gpt2_trainer', 'bert_trainer', 'vit_trainer', 'emptied', 'scaler', 'compile',
         'gpt2_trainer checkpointing')
NAMELESS = ('not_found', 'unseen')
NOT_YET = ('has not used', 'has loaded PyTorch')
ENOUGH = 0.85
KEY = 'ashlar_names'


class Asking:
    """Asks a process until it has answered, or is gone."""

    def __init__(self, bench):
        self.ashlar, self.kept, self.said = bench.ashlar, os.path.join(bench.new_folder('attach'), 'look.pickle'), []

    def __call__(self, pid):
        while os.path.exists(f'/proc/{pid}'):
            done = subprocess.run([self.ashlar, 'attach', str(pid), '--save', self.kept], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, check=False)
            self.said.append((done.returncode, done.stdout + done.stderr))
            if done.returncode == 0 and self.live_blocks() > 1 or done.returncode != 0 and not self.is_too_early():
                return
            time.sleep(0.05)

    def is_too_early(self):
        return any(words in self.said[-1][1] for words in NOT_YET)

    def live_blocks(self):
        """Of a single block the look may come between the call that makes it and the name that it gets."""
        return sum(one['blocks'] for one in histories.load(self.kept)[KEY]['holders'])


def ask(bench, program):
    python, verdict = venvs.python_of(HOME), Verdict()
    command = hollow_by_hand(bench, python, program.command())
    command.insert(1, 'TORCHINDUCTOR_FORCE_DISABLE_CACHES=1')  # what one run has compiled changes what the next one allocates
    alone = start(command, cwd=PROGRAMS)
    asking = Asking(bench)
    asked = start(command, cwd=PROGRAMS, during=asking)
    verdict.equal('exit code', (asked.code, alone.code), (0, 0))
    verdict.equal('what it tells', asked.told, alone.told)
    verdict.expect(os.path.exists(asking.kept), f'it was not asked: {asking.said[-1:]}')
    if verdict.failures:
        return verdict
    names = histories.load(asking.kept)[KEY]
    named = names['live_bytes'] - sum(one['bytes'] for one in names['holders'] if one['kind'] in NAMELESS)
    share = named / names['live_bytes']
    verdict.equal('bytes of all holders', sum(one['bytes'] for one in names['holders']), names['live_bytes'])
    verdict.expect(share >= ENOUGH, f'{share:.1%} has a name')
    verdict.cells.update({'live': mib(names['live_bytes']), 'named': f'{share:.1%}', 'took': f'{names["seconds"]:.1f} s'})
    return verdict


def rows():
    programs = [program for program in CATALOG if program.name in ASKED]
    return [Row('attach', program.name, 2 * program.seconds + 5, lambda bench, one=program: ask(bench, one))
            for program in programs]
