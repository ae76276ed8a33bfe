#!/usr/bin/env python3
"""Processor time of an allocate and free pair, in nanoseconds, in one process over the released libc10_cuda.so: PyTorch's
own allocator, Ashlar by PyTorch's class for allocators, Ashlar as its plug-in, and the plug-in alone.

    ashlar dry-run -- /path/to/venv/bin/python bench/torch_calls.py        # or on a GPU, without `ashlar dry-run`

`own`: c10::cuda::CUDACachingAllocator's raw_alloc and raw_delete. `ours`: the same calls of our class, which is what
ashlar_gpu.torch installs. `in the wrapper`: the same of PyTorch's
CUDAPluggableAllocator over ours, which keeps a table of addresses under a lock. `alone`: what the plug-in takes of that.
`--only PATTERN`: those whose name has it; `--brief`: a try.
ASHLAR_PREFIX says where ashlar is built or installed. The bench is compiled by g++ against the release's own headers, and
needs CUDA's (CUDA_HOME, else /usr/local/cuda).

Answers are checked: no two live blocks share a byte, and both allocators' accounting is empty at the end; a subject that gives
one block twice must be found out first. Exit code 1: a wrong answer.
"""

import ctypes
import os
import pathlib
import platform
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import torch
import torch_client

from ashlar_gpu import _library as c
from ashlar_gpu import _torch_native, _torch_plugin, _torch_settings

KIB, MIB = 1 << 10, 1 << 20
FIXED = [512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB]
# Name, live blocks, sizes (none: any, as heap_bench's steady_varying), and the least ratio of PyTorch's time to ours.
PATTERNS = [("ping_pong/4096", 1, [4096], 6), ("ping_pong/1048576", 1, [MIB], 6), ("ping_pong/67108864", 1, [64 * MIB], 6),
            ("steady_fixed/1000", 1000, FIXED, 5), ("steady_fixed/10000", 10_000, FIXED, 5),
            ("steady_fixed/100000", 100_000, FIXED, 2), ("steady_varying/1000", 1000, [], 5),
            ("steady_varying/10000", 10_000, [], 5), ("steady_varying/100000", 100_000, [], 2)]
SUBJECTS = ("own", "ours", "in the wrapper", "alone")
PAIRS, ROUNDS = 200_000, 5


def build():
    library = torch_client.load("torch_calls", ["c10", "c10_cuda", "torch", "torch_cuda"])
    library.measure.restype = ctypes.c_double
    library.measure.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t),
                                ctypes.c_size_t, ctypes.c_uint]
    library.use_plugin.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    library.use_class.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library


def measure(library, subject, count, sizes, pairs, seed):
    return library.measure(subject, count, pairs, (ctypes.c_size_t * len(sizes))(*sizes), len(sizes), seed)


def expect_empty():
    left = torch.cuda.memory_allocated(), c.statistics(_torch_plugin.open_allocator(0)).allocated_bytes
    if any(left):
        sys.exit(f"wrong: bytes are live at the end: {left}")


def main():
    pairs, rounds = (2000, 1) if "--brief" in sys.argv else (PAIRS, ROUNDS)
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(None)  # `ashlar dry-run` turns it on, at a price
    c.configure_process(_torch_settings.merged(None, torch.__version__))
    library = build()
    library.use_plugin(_torch_plugin._address("alloc"), _torch_plugin._address("free"))
    library.use_class(_torch_native.Native.load(torch).allocator(), torch.cuda.device_count())
    if measure(library, len(SUBJECTS), 2, FIXED, 10, 1) >= 0:
        sys.exit("wrong: a block that was given twice was not noticed")
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; {cpu}, {platform.platform()}; load "
          f"{os.getloadavg()[0]:.1f}; median of {rounds} rounds of {pairs:,} pairs")
    print(f"| pattern | {' | '.join(SUBJECTS)} | own / ours | own / in the wrapper | own / alone | >= | met |\n|{'---|' * 10}")
    for name, count, sizes, goal in PATTERNS:
        if only not in name or (count > 1000 and "--brief" in sys.argv):
            continue
        times = [[] for _ in SUBJECTS]
        for turn in range(rounds):
            for subject, taken in enumerate(times):  # side by side, so that what the machine does is alike
                taken.append(measure(library, subject, count, sizes, pairs, turn + 1))
        if min(map(min, times)) < 0:
            sys.exit(f"wrong: {name}: two live blocks share a byte")
        own, ours, wrapped, alone = (statistics.median(taken) for taken in times)
        print(f"| {name} | {own:.0f} | {ours:.0f} | {wrapped:.0f} | {alone:.0f} | {own / ours:.1f} | {own / wrapped:.2f} | "
              f"{own / alone:.1f} | {goal} | {'yes' if own / ours >= goal else 'no'} |", flush=True)
    expect_empty()


if __name__ == "__main__":
    main()
