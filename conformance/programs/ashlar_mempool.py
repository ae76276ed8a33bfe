"""One torch.cuda.MemPool over Ashlar, in a process whose allocator is PyTorch's own."""

import gc

import torch
from tell import tell

import ashlar_gpu.torch as integration
from ashlar_gpu import _library as c
from ashlar_gpu import _torch_plugin as plugin

MIB = 1 << 20
torch.cuda.init()
before = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
assert not integration.is_installed() and not plugin.open_allocators()
with integration.pool() as pool:
    inside = torch.empty(50 * MIB, dtype=torch.uint8, device="cuda")
    small = torch.empty(1000, dtype=torch.uint8, device="cuda")
handle = plugin.open_allocator(0)
of_torch = torch.cuda.memory_reserved() - 30 * MIB
ours = c.statistics(handle)
assert of_torch == 52 * MIB == ours.allocated_bytes, (of_torch, ours.allocated_bytes)  # segments of 50 and 2 MiB
block = c.find_block(handle, inside.data_ptr())
assert block.requested_bytes == 50 * MIB
del small
# A pool that the device has no room for: null from us is an out-of-memory error of PyTorch's own.
try:
    with integration.pool():
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    raise AssertionError("a petabyte was given")
except torch.cuda.OutOfMemoryError as error:
    own_words = "Tried to allocate" in str(error)
free, _ = torch.cuda.mem_get_info()
del inside, pool
gc.collect()
torch.cuda.empty_cache()
given_back = torch.cuda.mem_get_info()[0] - free
tell("ashlar_mempool", own_words=own_words, given_back=given_back, left=c.statistics(handle).reserved_bytes)
