"""CUDA's runtimes of two versions in one process: what one allocates the other frees, and each has its own layouts.

    python try_two_runtimes.py libcudart.so.12 libcudart.so.13     in the order in which they are to be opened
    python try_two_runtimes.py liblinked.so.12 liblinked.so.13     conformance/native/linked_calls.c, with a runtime linked in
"""

import ctypes
import json
import sys

MIB = 1 << 20
UNTOUCHED = 0x5A


def made(status):
    assert status == 0, status


class Runtime:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.major = int(path.rpartition(".so.")[2].split(".")[0])
        self.prefix = "" if "libcudart" in path else "own_"

    def call(self, name, *arguments):
        return getattr(self.library, self.prefix + name)(*arguments)

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        made(self.call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total)))
        return free.value

    def version(self):
        version = ctypes.c_int()
        made(self.call("cudaRuntimeGetVersion", ctypes.byref(version)))
        return version.value

    def allocated(self, size):
        pointer = ctypes.c_void_p()
        made(self.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size)))
        return pointer

    def bytes_of_properties(self, name):
        """How many bytes the function `name` writes: CUDA 11 has 728 of them, 12 has 1032, 13 has 1008."""
        written = (ctypes.c_ubyte * 4096)(*[UNTOUCHED] * 4096)
        made(self.call(name, written, 0))
        return len(bytes(written).rstrip(bytes([UNTOUCHED])))


runtimes = [Runtime(path) for path in sys.argv[1:]]
first, second = runtimes
start = first.free_bytes()
same_books, blocks = start == second.free_bytes(), []
for size in (64 * MIB, 32 * MIB):
    for runtime in runtimes:
        blocks.append((runtime, runtime.allocated(size)))
        same_books &= first.free_bytes() == second.free_bytes()
held = start - first.free_bytes()
for runtime, pointer in blocks:  # each is freed by the other
    made((second if runtime is first else first).call("cudaFree", pointer))
    same_books &= first.free_bytes() == second.free_bytes()
properties = {}
for runtime in runtimes:
    names = ["cudaGetDeviceProperties"] + ["cudaGetDeviceProperties_v2"] * (runtime.major == 12)
    properties.update({f"{runtime.major} {name}": runtime.bytes_of_properties(name) for name in names})
print(json.dumps({"program": "try_two_runtimes", "majors": [runtime.version() // 1000 for runtime in runtimes],
                  "same_books": same_books, "held": held, "returned": first.free_bytes() == start,
                  "properties": properties}))
