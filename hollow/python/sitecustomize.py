"""Starts Ashlar's Python side in each interpreter of a program that `ashlar dry-run` or `ashlar record` started.

The launcher puts this folder first on PYTHONPATH. Nothing is done where the program never imports torch, and a failure
is one line on stderr: the program goes on without. The user's own sitecustomize, the next one on sys.path, runs after.
"""

import os
import sys


def _start():
    if not (os.environ.get("ASHLAR_RECORD") or os.environ.get("ASHLAR_HOLLOW_RUN")):
        return
    try:
        from ashlar_hollow import start

        if os.environ.get("ASHLAR_FORK_SERVER"):
            from ashlar_hollow import fork_server

            fork_server.start(start.start)
        else:
            start.start()
    except Exception as error:
        sys.stderr.write("ashlar: the Python side did not start: %s: %s\n" % (type(error).__name__, error))


def _pass_on():
    """Imports the sitecustomize that this one hides. What it raises goes to Python's site, as without us."""
    here = os.path.dirname(os.path.abspath(__file__))
    ours = [p for p in sys.path if os.path.abspath(p or os.curdir) == here]
    this = sys.modules.pop(__name__)
    for path in ours:
        sys.path.remove(path)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.path[:0] = ours[:1]
        sys.modules.setdefault(__name__, this)


_start()
_pass_on()
