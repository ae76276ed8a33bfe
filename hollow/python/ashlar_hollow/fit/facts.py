"""What a run leaves for `ashlar fit`, fit-PID.json in the run folder: where it was when, and what each change found."""

import atexit
import json
import os
import sys


def of(program):
    error = getattr(sys, "last_value", None)
    return {
        "pid": os.getpid(),
        "steps": program.steps,
        "failed_step": program.failed_step,
        "phases": [{"what": what, "steps": steps} for what, steps in program.phases],
        "peaks": [{"steps": steps, "allocated": allocated, "reserved": reserved} for steps, allocated, reserved in program.peaks],
        "changes": [change.told() for change in program.changes],
        "exception": None if error is None else type(error).__name__,
    }


def write(program, folder):
    program.guarded(program.look_at_memory, program.steps + 1)
    path = os.path.join(folder, "fit-%d.json" % os.getpid())
    with open(path + ".part", "w") as out:
        json.dump(of(program), out)
    os.replace(path + ".part", path)


def at_exit(program, folder):
    """Of the process that imported torch: workers that it forks train nothing."""
    pid = os.getpid()

    def told():
        if os.getpid() == pid and (program.phases or program.steps):
            program.guarded(write, program, folder)

    atexit.register(told)
