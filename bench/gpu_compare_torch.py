#!/usr/bin/env python3
"""PyTorch's part of gpu_compare: ns of one request and its free by its native allocator, from Python, with the price of
an empty call of the same kind named beside it, for that is Python's and not the allocator's."""

import time

import torch

PAIRS = 20_000


def nanoseconds(call):
    call()
    begin = time.perf_counter_ns()
    for _ in range(PAIRS):
        call()
    return (time.perf_counter_ns() - begin) / PAIRS


def main():
    if not torch.cuda.is_available():
        print("skipped: torch sees no GPU")
        return
    torch.cuda.init()
    stream = torch.cuda.Stream()
    allocate, free = torch._C._cuda_cudaCachingAllocator_raw_alloc, torch._C._cuda_cudaCachingAllocator_raw_delete
    print(f"torch {torch.__version__}: ns of one request and its free; an empty pair of calls takes "
          f"{nanoseconds(lambda: (int(1), int(2))):.0f}")
    for size, name in ((512, "512 B"), (1 << 20, "1 MiB"), (20 << 20, "20 MiB")):
        address = allocate(size, stream.cuda_stream)
        assert address % 512 == 0, "a block is not aligned"
        free(address)
        print(f"{name:>8} {nanoseconds(lambda s=size: free(allocate(s, stream.cuda_stream))):10.0f}")
    assert torch.cuda.memory_allocated() == 0, "something was not freed"


if __name__ == "__main__":
    main()
