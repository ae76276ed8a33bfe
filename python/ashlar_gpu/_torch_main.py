"""The command line of `python -m ashlar_gpu.torch`: a program of PyTorch as it is, on Ashlar's allocator.

    python -m ashlar_gpu.torch [--conf SETTINGS] [--tune advise|switch] [--interface native|pluggable] SCRIPT ARGS...
    python -m ashlar_gpu.torch [the same] -m MODULE ARGS...

What comes after the script or the module is the program's own. Errors are one line on stderr: exit code 2 for a wrong
command line, 1 for what cannot be done.
"""

import argparse
import importlib.util
import os
import runpy
import sys

from ashlar_gpu._errors import Error

_USAGE = ("python -m ashlar_gpu.torch [--conf SETTINGS] [--tune advise|switch] [--interface native|pluggable] "
          "(SCRIPT | -m MODULE) ...")
_TAKE_ONE = ("--conf", "--tune", "--interface", "-m")


def _parser():
    parser = argparse.ArgumentParser(prog="python -m ashlar_gpu.torch", usage=_USAGE, allow_abbrev=False,
                                     description="Runs a program of PyTorch on Ashlar's allocator.")
    parser.add_argument("--conf", metavar="SETTINGS", help="settings, such as max_split_size_mb:128")
    parser.add_argument("--tune", metavar="HOW", choices=("advise", "switch"),
                        help="advise: say which settings would need less memory; switch: change to them too")
    parser.add_argument("--interface", metavar="WHICH", choices=("native", "pluggable"),
                        help="native: PyTorch's class for allocators, or an error; pluggable: its plug-in, which offers less")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does")
    parser.add_argument("program", metavar="SCRIPT ...", nargs="*", help="the program and its own arguments")
    return parser


def _split(words):
    """Our own words, and the program's: from the script on, or after the module."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word = words[at]
        at += 2 if word in _TAKE_ONE else 1
        if word.startswith("-m"):
            break
    return words[:at], words[at + 1:] if words[at:at + 1] == ["--"] else words[at:]


def main(words):
    own, program = _split(list(words))
    parser = _parser()
    asked = parser.parse_args(own)
    if asked.module is None and not program:
        parser.error("which program? give a SCRIPT, or -m MODULE")
    if asked.module is None and not os.path.exists(program[0]):
        sys.exit(f"ashlar: there is no file {program[0]}")
    _install(asked.conf, asked.tune, asked.interface)
    if asked.module is None:
        sys.argv[:] = program
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
        runpy.run_path(program[0], run_name="__main__")
        return
    if not _is_there(asked.module):
        sys.exit(f"ashlar: there is no module {asked.module}")
    sys.argv[:] = [asked.module, *program]
    runpy.run_module(asked.module, run_name="__main__", alter_sys=True)


def _install(conf, tune, interface):
    from ashlar_gpu import torch as integration  # not the module that runs as __main__

    try:
        integration.install(conf, tune=tune, interface=interface)
    except (Error, ImportError) as error:
        sys.exit("ashlar: " + str(error).removeprefix("ashlar: "))


def _is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
