"""SIGUSR1: the history is written, and the program goes on; where it has no handler of its own, with who holds the memory.
SIGTERM: the history is written before what would have happened.

A handler of the program is called after ours where it is there first, and takes the signal where it comes later.
The file usr1-PID in the folder says that SIGUSR1 is answered with names: `ashlar watch --names` asks no other process.
Thread rule: Python lets only the main thread install handlers; CUDA used first elsewhere goes without.
"""

import os
import signal
import threading


def install(recording):
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (getattr(signal, "SIGUSR1", None), signal.SIGTERM):
        if number is not None and signal.getsignal(number) is not None:  # None: a handler that is not Python's
            _chain(recording, number)


def _chain(recording, number):
    before = signal.getsignal(number)
    if number != signal.SIGTERM and before not in (signal.SIG_DFL, signal.SIG_IGN) and not callable(before):
        return

    def handler(_, frame):
        try:
            recording.write("signal %d" % number, takes_names=number != signal.SIGTERM and not callable(before))
        except Exception:
            pass  # a signal must not break the program
        if callable(before):
            before(number, frame)
        elif number == signal.SIGTERM and before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    signal.signal(number, handler)
    if number != signal.SIGTERM and not callable(before):
        _say_that_it_answers(recording)


def ends(recording):
    """The process answers no more."""
    try:
        os.remove(_marker(recording))
    except OSError:
        pass


def _say_that_it_answers(recording):
    try:
        with open(_marker(recording), "w"):
            pass
    except OSError:
        pass  # it is not asked, then


def _marker(recording):
    return recording.path("usr1-%d" % os.getpid())
