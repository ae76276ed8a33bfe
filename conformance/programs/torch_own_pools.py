"""torch.cuda.MemPool with an allocator of its own: what it is asked for, what comes back to it, and what the pool then is."""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from tell import tell

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from ashlar_gpu import _torch_native  # noqa: E402  (for the folders of CUDA's headers)

MIB = 1 << 20
ALLOCATOR = """
#include <cuda_runtime_api.h>
#include <cstring>
extern "C" {
struct Log { long long asked[64], freed[64]; int asks, frees, refuses; } told;
void* give(size_t bytes, int device, cudaStream_t stream) {
  if (told.refuses) return nullptr;
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess) { cudaGetLastError(); return nullptr; }
  if (told.asks < 64) told.asked[told.asks++] = bytes;
  return memory;
}
void take(void* memory, size_t bytes, int device, cudaStream_t stream) {
  cudaFree(memory);
  if (told.frees < 64) told.freed[told.frees++] = bytes;
}
}
"""


class Log(ctypes.Structure):
    _fields_ = [("asked", ctypes.c_longlong * 64), ("freed", ctypes.c_longlong * 64), ("asks", ctypes.c_int),
                ("frees", ctypes.c_int), ("refuses", ctypes.c_int)]

    def said(self):
        return [list(self.asked[:self.asks]), list(self.freed[:self.frees])]


def compiled(folder):
    source, made = pathlib.Path(folder) / "own.cc", pathlib.Path(folder) / "own.so"
    source.write_text(ALLOCATOR, encoding="utf-8")
    includes = [f"-isystem{path}" for path in _torch_native._cuda_includes(torch)]
    plain = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    subprocess.run(["g++", "-O1", "-w", "-shared", "-fPIC", *includes, str(source), "-o", str(made),
                    _torch_native._loaded("libcudart.so")], check=True, env=plain)
    return str(made)


def empty(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def laid(pool):
    segments = pool.snapshot()
    return [(s["total_size"], s["is_expandable"], [(b["size"], b["state"]) for b in s["blocks"]]) for s in segments]


def figures():
    stats = torch.cuda.memory_stats()
    return [stats[name] for name in ("reserved_bytes.all.current", "reserved_bytes.all.peak", "allocated_bytes.all.current",
                                     "num_device_alloc", "num_device_free", "segment.all.current", "num_alloc_retries")]


def used(pool, log):
    """Blocks come and go; the pool keeps its segments."""
    with torch.cuda.use_mem_pool(pool):
        first, second, small = empty(30), empty(3), torch.empty(100, device="cuda")
    yield laid(pool), log.said(), figures()
    del first
    with torch.cuda.use_mem_pool(pool):
        again, more = empty(12), empty(16)
    yield laid(pool), log.said(), figures()
    del second, small, again, more
    torch.cuda.empty_cache()
    yield laid(pool), log.said(), figures()


def refused(pool, log):
    """Nothing is given: memory is short, and the program goes on."""
    log.refuses = 1
    try:
        with torch.cuda.use_mem_pool(pool):
            empty(100)
        yield "served"
    except torch.OutOfMemoryError:
        yield "out of memory", figures()
    finally:
        log.refuses = 0
    other = empty(100)
    yield log.said(), figures()
    del other


def captured(pool, log):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool.id):
        out = empty(24)
        out.fill_(1)
    yield laid(pool), log.said(), figures()
    graph.replay()
    del graph, out
    yield laid(pool), log.said(), figures()


def outlived(pool_maker, log):
    """A block lives longer than its pool."""
    pool = pool_maker()
    with torch.cuda.use_mem_pool(pool):
        block = empty(40)
    del pool
    gc.collect()
    yield log.said(), figures()
    del block
    torch.cuda.empty_cache()
    yield log.said(), figures()


def threatened(pool_maker, log):
    """The pool serves others before they are out of memory."""
    pool = pool_maker(use_on_oom=True)
    with torch.cuda.use_mem_pool(pool):
        block = empty(200)
    del block
    free = torch.cuda.mem_get_info()[0]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 64 * MIB) / torch.cuda.mem_get_info()[1])
    large = empty(150)
    yield laid(pool), log.said(), figures(), free > 0
    torch.cuda.set_per_process_memory_fraction(1.0)
    del large, pool
    gc.collect()
    torch.cuda.empty_cache()
    yield log.said(), figures()


if __name__ == "__main__":
    torch.cuda.init()
    with tempfile.TemporaryDirectory() as folder:
        path = compiled(folder)
        log = Log.in_dll(ctypes.CDLL(path), "told")
        allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "give", "take")

    def make(**traits):
        return torch.cuda.MemPool(allocator.allocator(), **traits)

    answers = {}
    for scene in (used, refused, captured):
        pool = make()
        answers[scene.__name__] = list(scene(pool, log))
        del pool
        gc.collect()
        torch.cuda.empty_cache()
        answers[scene.__name__ + " at the end"] = (log.said(), figures())
    for scene in (outlived, threatened):
        answers[scene.__name__] = list(scene(make, log))
    plain = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(plain):
        block = empty(5)
    answers["a pool without one"] = (laid(plain), log.said(), figures())
    tell("torch_own_pools", answers=answers, asked=log.asks, given_back=log.frees)
