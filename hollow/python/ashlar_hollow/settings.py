"""The settings that the launcher gives by environment. A value that cannot be read is as if it were not there."""

import os
import time

BEGAN = time.monotonic()  # this process, nearly: Python reads this before the program

RECORD = "ASHLAR_RECORD"  # the folder where histories go
HOLLOW_RUN = "ASHLAR_HOLLOW_RUN"  # the run folder of a dry run
HISTORY = "ASHLAR_HISTORY"  # how many events a device's history holds
REPRODUCIBLE = "ASHLAR_REPRODUCIBLE"
SMALL_VALUES = "ASHLAR_SMALL_VALUES"  # tensors of up to so many bytes have real values; 0: none
SKIP_INIT = "ASHLAR_SKIP_INIT"
NAMES = "ASHLAR_NAMES"  # how long one look at who holds the memory may take, and when it is: "3s", "off", "peak,3s"
REDACT = "ASHLAR_REDACT"  # what is written has no names of the program
FIT = "ASHLAR_FIT"  # changes to make, with commas between; "watch": none, and each says where it would be made
FIT_STOP = "ASHLAR_FIT_STOP"  # the step after which a changed program ends
FIT_COUNTS = "ASHLAR_FIT_COUNTS"  # the run counts the operations of a step
FIT_DRAWN = "ASHLAR_FIT_DRAWN"  # the folder where the first run says what it drew, and a run apart reads what it may leave out
FIT_ROOM = "ASHLAR_FIT_ROOM"  # the device of the run has room for all that is asked for
FORK_SERVER = "ASHLAR_FORK_SERVER"  # the socket of the launcher: this interpreter is forked for each run (fork_server.py)
FORK_MODULES = "ASHLAR_FORK_MODULES"  # the file of what it imports before
RANKS = "ASHLAR_RANKS"  # the folder that the ranks share which are run one at a time
VALUE = "ASHLAR_VALUE"  # what lines of the program read, one a line: "train.py:88=0.5"
ROUTING = "ASHLAR_ROUTING"  # how routers of experts choose: "balanced", "random:7", "worst"
APART = "ASHLAR_APART"  # the folder for the files of a program that is run again


def number(name, default):
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return default


def flag(name):
    return os.environ.get(name, "") not in ("", "0")


def small_values():
    """Tensors of up to so many bytes have real values: of a dry run; 0: none."""
    return number(SMALL_VALUES, 65536) if os.environ.get(HOLLOW_RUN) else 0


def given_values():
    return [text for text in os.environ.get(VALUE, "").split("\n") if text] if os.environ.get(HOLLOW_RUN) else []


def record_folder():
    """Where histories go, or None."""
    return os.environ.get(RECORD) or os.environ.get(HOLLOW_RUN) or None


def made_up():
    """What bytes hold that only a kernel would have written: ("zeros" | "ones" | "random", seed)."""
    kind, seed = "zeros", 0
    try:
        with open(os.path.join(os.environ[HOLLOW_RUN], "machine")) as lines:
            for line in lines:
                key, _, value = line.strip().partition("=")
                if key == "values":
                    kind = value.partition(":")[0]
                    seed = int(value.partition(":")[2] or seed)
                elif key == "random_seed":
                    seed = int(value)
    except (KeyError, OSError, ValueError):
        pass
    return (kind if kind in ("zeros", "ones", "random") else "zeros"), seed
