"""What is changed in an interpreter: hooks only, until the program imports torch.

    start(after, None, folder)                      # all changes look on
    start(after, ["half-batch"], folder, stop=6)    # this one is made; the program ends after its 6th step

`after(module, call)` is a call after a module's import.
"""

from . import facts
from .program import Program


def start(after, names, folder=None, stop=0, made=None):
    def installed(torch):
        program = Program(torch, names, stop)
        program.install(after)
        if folder:
            facts.at_exit(program, folder)
        if made is not None:
            made(program)

    after("torch", installed)
