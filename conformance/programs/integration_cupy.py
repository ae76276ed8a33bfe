"""CuPy's own classes of memory over Ashlar's functions. CuPy's runtime is linked statically and does not start here, so
what needs it (the current device and stream) is given by the program."""

import ctypes
import json
import time

import cupy
from cupy.cuda import memory

import ashlar_gpu.cupy as integration
from ashlar_gpu import allocator

MIB, PAIRS = 1 << 20, 20000
current = {"stream": 0}
ask = ctypes.PYFUNCTYPE(ctypes.c_ssize_t)(lambda: current["stream"])
by_c = integration.Functions(ctypes.cast(ask, ctypes.c_void_p).value)


def of_c(size, stream=0, device=0):
    current["stream"] = stream
    return memory.CFunctionAllocatorMemory(size, *by_c.arguments, device)


def of_python(size, stream=0, device=0):
    return memory.PythonFunctionAllocatorMemory(
        size, lambda size, device: allocator.allocate(size, stream, device), integration.free, device)


def kind_of(action):
    try:
        action()
    except Exception as error:
        return type(error).__mro__[0].__name__, isinstance(error, MemoryError), str(error).split("\n")[0][:60]
    return "none", False, ""


def nanoseconds_of_a_pair(make):
    begun = time.process_time_ns()
    for _ in range(PAIRS):
        make(MIB)
    return (time.process_time_ns() - begun) // PAIRS


ways = {"c": of_c, "python": of_python}
refusal = kind_of(lambda: integration.functions("c"))
if refusal[0] != "none":
    ways.pop("c")
told = {"program": "integration_cupy", "version": f"CuPy {cupy.__version__}", "found": integration._current_stream_function() is not None,
        "kind": type(integration.functions()).__name__, "refusal": refusal[0], "ways": list(ways)}
for name, make in ways.items():
    before = allocator.statistics()["allocated_bytes"]
    first = make(3 * MIB)
    array = cupy.ndarray((3, MIB // 4), dtype="float32", memptr=memory.MemoryPointer(first, 0))
    held = allocator.statistics()["allocated_bytes"] - before
    address = first.ptr
    del first
    kept = allocator.statistics()["allocated_bytes"] - before  # the array keeps it
    del array
    elsewhere, again = make(3 * MIB, stream=0x55), make(3 * MIB, stream=1)
    told[name] = {"held": held, "kept": kept, "is_reused": again.ptr == address, "is_other": elsewhere.ptr != address,
                  "failure": kind_of(lambda make=make: make(1 << 50)), "per_thread": kind_of(lambda make=make: make(MIB, 2)),
                  "no_device": kind_of(lambda make=make: make(MIB, device=7))}
    del elsewhere, again
    told[name]["left"] = allocator.statistics()["allocated_bytes"] - before
if "c" in ways:
    without_stream = integration.Functions(None)
    told["c"]["ns_of_a_pair"] = nanoseconds_of_a_pair(
        lambda size: memory.CFunctionAllocatorMemory(size, *without_stream.arguments, 0))
told["python"]["ns_of_a_pair"] = nanoseconds_of_a_pair(of_python)
print(json.dumps(told))
