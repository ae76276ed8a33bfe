"""The command line of `python -m ashlar_gpu.fit`: a program of PyTorch with changes made from outside, its files untouched.

    python -m ashlar_gpu.fit --with CHANGE,... SCRIPT ARGS...
    python -m ashlar_gpu.fit --with CHANGE,... -m MODULE ARGS...

What comes after the script or the module is the program's own. A change that found no place is a line on stderr at the end.
"""

import argparse
import atexit
import os
import runpy
import sys

from . import order, start, table

USAGE = "python -m ashlar_gpu.fit --with CHANGE,... (SCRIPT | -m MODULE) ..."


def split(words):
    """Our own words, and the program's: from the script on, or after the module."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        at += 2 if words[at] in ("--with", "-m") else 1
        if words[at - 2:at - 1] == ["-m"]:
            break
    return words[:at], words[at + 1:] if words[at:at + 1] == ["--"] else words[at:]


def changes(parser, text):
    names = text.split(",")
    for name in names:
        if name not in table.NAMES and table.asked(name) is None and name != order.WorstFirst.name:
            parser.error("--with: there is no change %r: %s, batch-size=N, length=N, checkpointing-heaviest=I+J, context=N, worst-first" % (name, ", ".join(table.NAMES)))
    groups = [kind.group for kind in table.KINDS if kind.name in names and kind.group]
    if len(groups) != len(set(groups)):
        parser.error("--with: %s: two of one group" % text)
    return names


def tell_missing(program):
    def told():
        for change in program.changes:
            if change.told()["why_not"]:
                sys.stderr.write("ashlar: fit: %s was not made: %s\n" % (change.name, change.told()["why_not"]))

    pid = os.getpid()
    atexit.register(lambda: told() if os.getpid() == pid else None)


def main(words):
    own, program = split(list(words))
    parser = argparse.ArgumentParser(prog="python -m ashlar_gpu.fit", usage=USAGE, allow_abbrev=False,
                                     description="Runs a program of PyTorch with changes made from outside.")
    parser.add_argument("--with", dest="names", metavar="CHANGE,...", required=True, help=", ".join(table.NAMES) + ", batch-size=N, length=N, checkpointing-heaviest=I+J, context=N, worst-first")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    asked = parser.parse_args(own)
    names = changes(parser, asked.names)
    if asked.module is None and not program:
        parser.error("which program? give a SCRIPT, or -m MODULE")
    if asked.module is None and not os.path.exists(program[0]):
        sys.exit("ashlar: there is no file %s" % program[0])
    from .. import _imports  # the package's; what runs in a dry run has its own

    start.start(_imports.after, names, made=tell_missing)
    if asked.module is None:
        sys.argv[:] = program
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
        return
    sys.argv[:] = [asked.module] + program
    runpy.run_module(asked.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
