"""Blocks at addresses that the caller names: c10::cuda::CUDACachingAllocator::allocateWithAddress, which C++ alone can call. Where
they lie, what is refused, and the history."""

import ctypes

import compiled
import torch
from tell import tell

MIB = 1 << 20
SETTINGS = ("", "max_split_size_mb:20", "max_split_size_mb:20,roundup_power2_divisions:4")
CALL = """
#include <c10/cuda/CUDACachingAllocator.h>
extern "C" void* allocate_at(std::size_t bytes, void* address) {
  try {
    auto block = c10::cuda::CUDACachingAllocator::allocateWithAddress(bytes, address);
    return block.release_context();
  } catch (const c10::Error&) {
    return nullptr;
  }
}
"""


def made_call():
    call = compiled.load(CALL).allocate_at
    call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_void_p]
    return call


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def laid(base):
    return [(segment["address"] - base, segment["total_size"],
             [(block["size"], block["state"]) for block in segment["blocks"]]) for segment in torch.cuda.memory_snapshot()]


def figures():
    stats = torch.cuda.memory_stats()
    return [stats[f"{name}.all.{kind}"] for name in ("allocated_bytes", "requested_bytes", "inactive_split_bytes", "allocation")
            for kind in ("current", "peak", "allocated", "freed")]


class Asker:
    """Asks for a block at an address, tells what is there then, and gives it back."""

    def __init__(self, call):
        self.call = call
        self.answers = []
        self.served = 0

    def ask(self, base, size, address):
        got = self.call(size, address)
        self.answers.append((got and got - base, laid(base), figures()))
        if got:
            self.served += 1
            torch.cuda.caching_allocator_delete(got)
            self.answers.append(laid(base))


def ask_all(asker):
    large = empty(30 * MIB)
    base = large.data_ptr()
    del large
    for size, offset in ((30 * MIB, 0), (8 * MIB, 0), (8 * MIB, 4 * MIB), (8 * MIB, 22 * MIB), (8 * MIB, 23 * MIB), (1000, 0),
                         (2 * MIB + 1000, 5 * MIB), (25 * MIB, 2 * MIB), (20 * MIB, 9 * MIB + 512 * 1024), (8 * MIB, 100),
                         (8 * MIB, 1 << 40), (0, 0)):
        asker.ask(base, size, base + offset)
    asker.ask(base, 8 * MIB, None)
    below = empty(4 * MIB)
    for offset in (0, MIB, 6 * MIB):
        asker.ask(base, 8 * MIB, below.data_ptr() + offset)
    return base


def ask_small(asker):
    first, second = empty(1000), empty(1000)
    base = first.data_ptr()
    del first
    for size, offset in ((1000, 0), (512, 0), (512, 512), (1000, 4096), (1000, 1024), (2 * MIB - 4096, 4096)):
        asker.ask(base, size, base + offset)
    del second


def ask_elsewhere(asker, base):
    """Of another stream and of a pool."""
    side, pool = torch.cuda.Stream(), torch.cuda.MemPool()
    with torch.cuda.stream(side):
        asker.ask(base, 8 * MIB, base)
    with torch.cuda.use_mem_pool(pool):
        asker.ask(base, 8 * MIB, base)
        inside = empty(30 * MIB)
        of_pool = inside.data_ptr()
        del inside
        asker.ask(base, 8 * MIB, of_pool + 2 * MIB)
    asker.ask(base, 8 * MIB, of_pool + 2 * MIB)


if __name__ == "__main__":
    torch.cuda.init()
    asker = Asker(made_call())
    torch.cuda.memory._record_memory_history(stacks="python")
    for text in SETTINGS:
        torch.cuda.memory.empty_cache()
        if text:
            torch.cuda.memory._set_allocator_settings(text)
        base = ask_all(asker)
        ask_small(asker)
        ask_elsewhere(asker, base)
    entries = torch.cuda.memory._snapshot()["device_traces"][0]
    history = [(entry["action"], entry["size"]) for entry in entries if entry["action"] != "snapshot"]
    tell("torch_addresses", answers=asker.answers, served=asker.served, history=history)
