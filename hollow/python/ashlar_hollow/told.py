"""What a library says of its own memory: KIND-PID.json in the run folder, which is there whole or not at all.

    told.write("vllm", {"weights_bytes": 226492416}, folder)
    told.after(module.Worker, "determine_available_memory", "vLLM", lambda worker: tell(worker, folder))

Thread rule: any thread.
"""

import json
import os
import sys

from .unseen import during


def write(kind, values, folder):
    path = os.path.join(folder, "%s-%d.json" % (kind, os.getpid()))
    with open(path + ".part", "w") as file:
        json.dump(values, file)
    os.rename(path + ".part", path)


def after(owner, method, name, tell):
    """Calls `tell(object)` after each call of the method. Where that fails, as with a release that names things otherwise, a line
    says so, and the library goes on."""

    def start(of):
        def end():
            try:
                tell(of)
            except Exception as error:
                sys.stderr.write("ashlar: %s does not tell its memory: %s: %s\n" % (name, type(error).__name__, error))

        return end

    setattr(owner, method, during(getattr(owner, method), start))
