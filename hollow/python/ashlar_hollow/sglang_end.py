"""SGLang ends its processes by SIGKILL, which leaves no accounting of them. Here its scheduler is asked to end first (SIGUSR2), and ends
as a program does that is done; what has not ended in a few seconds is killed as before.

Thread rule: that of the caller; the scheduler ends in its main thread.
"""

import atexit
import functools
import os
import signal
import sys
import time

from . import settings

MOST_SECONDS = 20  # until it is killed
NAME = "sglang-ends-"  # of the files of those that can be asked
_asked = []


def _marker(pid):
    return os.path.join(settings.record_folder(), "%s%d" % (NAME, pid))


def answer(module):
    """After the import of sglang.srt.managers.scheduler: its process says that it can be asked, and ends when it is."""
    run = module.run_scheduler_process

    @functools.wraps(run)
    def run_scheduler_process(*args, **kwargs):
        if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
            signal.signal(signal.SIGUSR2, _end)
            with open(_marker(os.getpid()), "w"):
                pass
        try:
            return run(*args, **kwargs)
        finally:
            if _asked:
                atexit._run_exitfuncs()  # what is written at exit
                os._exit(0)  # the rest of an interpreter's end takes long, and is waited for

    module.run_scheduler_process = run_scheduler_process


def _end(number, frame):
    if not _asked:
        _asked.append(number)
        os.remove(_marker(os.getpid()))
        sys.exit(0)


def ask(module):
    """After the import of sglang.srt.utils.common."""
    kill = module.kill_process_tree

    @functools.wraps(kill)
    def kill_process_tree(*args, **kwargs):
        try:
            _ask_all(args[0] if args else kwargs.get("parent_pid"))
        except Exception as error:
            sys.stderr.write("ashlar: SGLang's processes are killed at once: %s: %s\n" % (type(error).__name__, error))
        return kill(*args, **kwargs)

    module.kill_process_tree = kill_process_tree


def _ask_all(parent):
    asked = [pid for pid in _answering() if _is_below(pid, parent or os.getpid())]
    for pid in asked:
        os.kill(pid, signal.SIGUSR2)
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end and any(_is_there(pid) for pid in asked):
        time.sleep(0.05)


def _answering():
    names = os.listdir(settings.record_folder())
    return [int(name[len(NAME):]) for name in names if name.startswith(NAME) and name[len(NAME):].isdigit()]


def _state_and_parent(pid):
    """('S', 4711), or (None, 0) of a process that is gone."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except OSError:
        return None, 0
    return state, int(parent)


def _is_below(pid, parent):
    while pid > 1:
        pid = _state_and_parent(pid)[1]
        if pid == parent:
            return True
    return False


def _is_there(pid):
    return _state_and_parent(pid)[0] not in (None, "Z")
