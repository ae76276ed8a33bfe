"""What is changed in an interpreter: hooks only, until the program imports torch.

    start(after, None, folder)                      # all changes look on
    start(after, ["half-batch"], folder, stop=6)    # this one is made; the program ends after its 6th step

`after(module, call)` is a call after a module's import.
"""

import os

from . import drawn, facts, operations, table
from .engine import ONE_PROCESS
from .program import Program


def start(after, names, folder=None, stop=0, made=None, counts=False, draws=None, leaves_draws=False, imported=None,
          stopped=None, knows=None, has_ample_room=False):
    def installed(torch):
        program = Program(torch, names, stop, has_ample_room)
        program.imported = imported
        program.stopped = stopped
        program.knows = knows
        if counts:
            program.counter = operations.Counter(program)
        if draws:
            program.draws = program.guarded(drawn.Draws, torch, draws, leaves_draws)
        program.install(after)
        program.tell("on_start", os.environ)
        if folder:
            facts.at_exit(program, folder)
            os.environ.setdefault(ONE_PROCESS, "0")
        if made is not None:
            made(program)

    for kind in table.KINDS:
        if names is not None and kind.name in names:
            kind.prepare(os.environ)
    after("torch", installed)
