"""Memory that PyTorch's own allocator does not serve: backend:cudaMallocAsync of the settings, or with "own" functions in
its place. Neither has a history, a snapshot or an observer of failures; the second has no statistics either."""

import json
import os
import subprocess
import sys
import tempfile

import torch

MIB = 1 << 20
FUNCTIONS = """
#include <sys/types.h>
int cudaMalloc(void** at, size_t bytes);
int cudaFree(void* at);
void* own_malloc(ssize_t bytes, int device, void* stream) { void* at = 0; cudaMalloc(&at, bytes); return at; }
void own_free(void* at, ssize_t bytes, int device, void* stream) { cudaFree(at); }
"""


def use_own():
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "own.so")
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"]
        subprocess.run(command, input=FUNCTIONS.encode(), check=True)
        allocator = torch.cuda.memory.CUDAPluggableAllocator(library, "own_malloc", "own_free")
        torch.cuda.memory.change_current_allocator(allocator)


if "own" in sys.argv:
    use_own()
kept = [torch.ones(16 * MIB, dtype=torch.uint8, device="cuda") for _ in range(10)]
caught = ""
if "fails" in sys.argv:
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        caught = type(error).__name__
print(json.dumps({"program": "other_allocator", "backend": torch.cuda.get_allocator_backend(), "blocks": len(kept),
                  "caught": caught}))
