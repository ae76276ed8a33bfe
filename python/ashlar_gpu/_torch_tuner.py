"""The tuner of PyTorch's allocator (ashlar guide tuner): a thread that has `ashlar tune` look at the last steps.

    tuner = Tuner("advise", handle, told=print)     # or "switch"
    tuner.look()                                    # now, on this thread: the decision's line
    tuner.start(pause=10); tuner.stop()

The last events are kept in a ring of the allocator. While the program, or who started it, records a history
(torch.cuda.memory._record_memory_history) there is none: then `copy_recording(file)` copies what is recorded so far, and says
whether it did. Threads: any; one look at a time.
"""

import os
import tempfile
import threading

from . import _library as c
from . import _program
from ._errors import Error

MODES = ("advise", "switch")
RING_BYTES = 8 << 20
PAUSE_SECONDS = 10.0


def mode_of(given, environment=None):
    """What install is given, else ASHLAR_TUNE; None: no tuner."""
    mode = given or (os.environ if environment is None else environment).get("ASHLAR_TUNE") or None
    if mode is not None and mode not in MODES:
        raise c.Error(c.INVALID_ARGUMENT, f"ashlar: tune: '{mode}' is not advise or switch")
    return mode


class Tuner:
    def __init__(self, mode, handle, told, run=_program.run, copy_recording=lambda file: False):
        self._mode = mode
        self._copy_recording = copy_recording
        self._handle = handle
        self._told = told
        self._run = run
        self._looking = threading.Lock()
        self._wake = threading.Event()
        self._thread = None
        self._line = None  # the last decision's
        self._observed = None  # (conf before, conf, steps of the proof) of a switch that has not shown what it gains
        self._passed_over = []
        self._start_ring()

    def _start_ring(self):
        try:
            c.start_ring(self._handle, RING_BYTES)
        except c.Error:
            return False  # the program records
        return True

    def start(self, pause=PAUSE_SECONDS):
        self._thread = threading.Thread(target=self._work, args=(pause,), name="ashlar-tuner", daemon=True)
        self._thread.start()

    def stop(self, last_look=False):
        """Waits for a look that is under way."""
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if last_look:
            self.look()

    def _work(self, pause):
        while not self._wake.wait(pause):
            self.look()

    def look(self):
        with self._looking:
            line = self._decide()
        if line != self._line:
            self._line = line
            self._told(line)
        return line

    def _answer(self):
        with tempfile.TemporaryDirectory(prefix="ashlar-") as folder:
            file = os.path.join(folder, "ring.ashlar")
            self._write(file)
            flags = [word for conf in self._passed_over for word in ("--pass-over", conf)]
            if self._observed:
                flags += ["--compare", self._observed[0]]
            return _program.answered(self._run(["tune", file, *flags]), "tune").json

    def _write(self, file):
        try:
            c.write_ring(self._handle, file)
        except c.Error as error:
            if error.status != c.FAILED_PRECONDITION or not self._copy_recording(file):
                raise

    def _decide(self):
        try:
            answer = self._answer()
        except c.Error as error:
            if error.status != c.FAILED_PRECONDITION:
                return str(error)
            self._start_ring()
            return "nothing is tried: the program records its own history"
        except (Error, OSError) as error:
            return str(error)
        if self._observed and answer["compared"]:
            return self._judge(answer)
        if answer["finding"] != "live":
            return f"advised {answer['reason']}" if answer["finding"] == "start" else answer["reason"]
        if self._mode == "advise":
            return f"advised {answer['reason']}"
        conf = answer["live"]["conf"]
        try:
            c.change_settings(self._handle, conf)
        except c.Error as error:
            return str(error)
        self._observed = (answer["conf"], conf, answer["steps"])
        return f"switched to {answer['reason']}"

    def _judge(self, answer):
        before, conf, steps = self._observed
        now, compared = answer["now"], answer["compared"]
        if answer["steps"] < steps:
            return f"switched to {conf}: {answer['steps']} of the {steps} steps that tell what it gains are seen"
        if now == compared and now["peak_reserved_bytes"] <= answer["least_reserved_bytes"]:
            return f"switched to {conf}: {answer['steps']} steps needed no more than what was reserved, and do not tell what it gains"
        seen = (f"{now['peak_reserved_bytes'] / 2**20:,.2f} MiB reserved instead of "
                f"{compared['peak_reserved_bytes'] / 2**20:,.2f} MiB in {answer['steps']} steps")
        self._observed = None
        if answer["gains_over_compared"]:
            return f"kept {conf}: {seen}"
        self._passed_over.append(conf)
        c.change_settings(self._handle, before)
        return f"switched back to {before or 'the default settings'}: {conf} does not gain what it promised, {seen}"
