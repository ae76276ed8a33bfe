"""What JAX had of the memory that it reserved, written at the program's end: jax-PID.json in the run folder.

    {"devices": [{"index": 0, "peak_in_use_bytes": 4194816, "reserved_bytes": 17741905920, "limit_bytes": 17741905920}],
     "out_of_memory": "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 256.00GiB."}

JAX takes most of a device at its start, so that the device's own accounting does not tell what the program needs. Only
backends that the program has made are asked. The interpreter keeps the error that ended the program as sys.last_value.
"""

import atexit
import sys

from . import told as files

NO_MEMORY = "RESOURCE_EXHAUSTED"


def _devices():
    bridge = sys.modules.get("jax._src.xla_bridge")
    for name, backend in sorted(getattr(bridge, "_backends", {}).items()):
        if name != "cuda":
            continue
        for device in backend.local_devices():
            told = device.memory_stats() or {}
            yield {"index": device.local_hardware_id, "peak_in_use_bytes": told.get("peak_bytes_in_use", 0),
                   "reserved_bytes": told.get("peak_pool_bytes") or told.get("pool_bytes", 0),
                   "limit_bytes": told.get("bytes_limit", 0)}


def _failure():
    error = getattr(sys, "last_value", None)
    text = str(error) if type(error).__name__ == "JaxRuntimeError" else ""
    return text.splitlines()[0] if text.startswith(NO_MEMORY) else ""


def tell(folder):
    devices = list(_devices())
    if devices:
        files.write("jax", {"devices": devices, "out_of_memory": _failure()}, folder)


def install(folder):
    """After `import jax`: what it has registered for the exit takes its backends away, and runs later."""

    def at_exit():
        try:
            tell(folder)
        except Exception as error:  # of a release that tells it otherwise: the program ends as without us
            sys.stderr.write("ashlar: JAX does not tell its memory: %s: %s\n" % (type(error).__name__, error))

    atexit.register(at_exit)
