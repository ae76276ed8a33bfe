"""What a run leaves for `ashlar fit`, fit-PID.json in the run folder: where it was when, and what each change found."""

import atexit
import json
import os
import sys

from . import patch
from .batch import Size


def of(program):
    error = getattr(sys, "last_value", None)
    diff = program.guarded(patch.of, [change for change in program.changes if change.is_on]) or ("", [])
    return {
        "pid": os.getpid(),
        "steps": program.steps or program.calls,
        "trains": program.steps > 0,
        "failed_step": program.failed_step,
        "phases": [{"what": what, "steps": steps} for what, steps in program.phases],
        "peaks": [{"steps": steps, "allocated": allocated, "reserved": reserved} for steps, allocated, reserved in program.peaks],
        "changes": [change.told() for change in program.changes if change.is_on or not isinstance(change, Size)],
        "batch": next((change.batch() for change in program.changes if isinstance(change, Size)), None),
        "lengths_vary": program.lengths_vary(),
        "drawn_seconds": 0.0 if program.draws is None else program.draws.seconds,
        "requests": program.requests,
        "imported": None if program.imported is None else program.imported.told(),
        "held": [{"what": what, "bytes": count} for what, count in program.held.most.items()],
        "work": None if program.counter is None else program.counter.work,
        "engine": program.engine.told(),
        "host_bytes": sum(change.host_bytes for change in program.changes if change.is_on),
        "diff": {"text": diff[0], "changes": diff[1]},
        "exception": None if error is None else type(error).__name__,
    }


def write(program, folder):
    program.guarded(program.look_at_memory, (program.steps if program.is_trained else program.calls) + 1)
    program.tell("on_end")
    path = os.path.join(folder, "fit-%d.json" % os.getpid())
    with open(path + ".part", "w") as out:
        json.dump(of(program), out)
    os.replace(path + ".part", path)


def at_exit(program, folder):
    """Of the process that imported torch: workers that it forks train nothing."""
    pid = os.getpid()

    def told():
        if os.getpid() == pid and (program.phases or program.steps or program.engine.refused):
            program.guarded(write, program, folder)

    atexit.register(told)
