"""libashlar_torch.so as Python sees it, and how PyTorch is given its functions.

    plugin = whole_process(torch)                  # a torch.cuda.memory.CUDAPluggableAllocator with every setter set
    handle = open_allocator(0)                     # None where PyTorch has not used the device

Threads: any.
"""

import ctypes
import functools

from . import _library as c
from . import _native

LIBRARY = "libashlar_torch.so"
# torch's setter -> our function. A setter that a release of PyTorch lacks is passed over.
SETTERS = {
    "set_init_fn": "init",
    "set_reset_fn": "reset",
    "set_memory_fraction_fn": "memory_fraction",
    "set_base_alloc_fn": "base_alloc",
    "set_record_stream_fn": "record_stream",
    "set_begin_allocate_to_pool": "begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "end_allocate_to_pool",
    "set_release_pool": "release_pool",
}
Opened = ctypes.CFUNCTYPE(None, ctypes.c_int)
Failed = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_size_t)


@functools.cache
def library():
    c.library()  # beside it, and of the version that this package was written for
    found = ctypes.CDLL(_native.library(LIBRARY))
    found.ashlar_torch_open_allocator.restype = ctypes.c_void_p
    found.ashlar_torch_open_allocator.argtypes = [ctypes.c_int]
    found.ashlar_torch_observe.restype = None
    found.ashlar_torch_observe.argtypes = [Opened, Failed]
    found.ashlar_torch_begin_thread_pool.restype = ctypes.c_int32
    found.ashlar_torch_begin_thread_pool.argtypes = [ctypes.c_int, c.Pool]
    return found


def _address(name):
    return ctypes.cast(getattr(library(), "ashlar_torch_" + name), ctypes.c_void_p).value


def whole_process(torch):
    """For torch.cuda.memory.change_current_allocator. The caller keeps it: PyTorch keeps a part of it only."""
    path = _native.library(LIBRARY)
    library()
    plugin = torch.cuda.memory.CUDAPluggableAllocator(path, "ashlar_torch_alloc", "ashlar_torch_free")
    inner = plugin.allocator()
    for setter, function in SETTERS.items():
        if hasattr(inner, setter):
            getattr(inner, setter)(_address(function))
    return plugin


@functools.cache
def segments(torch):
    """For torch.cuda.MemPool(segments(torch).allocator()): PyTorch's own allocator, over memory of ours. Kept as long as
    the process: PyTorch gives segments back after their pool has ended, and 2.6 keeps the bare address of the plug-in."""
    library()
    names = "ashlar_torch_segment_alloc", "ashlar_torch_segment_free"
    return torch.cuda.memory.CUDAPluggableAllocator(_native.library(LIBRARY), *names)


def open_allocator(device):
    return library().ashlar_torch_open_allocator(device)


def open_allocators():
    """{device: handle}, by device."""
    found = ((device, open_allocator(device)) for device in range(64))
    return {device: handle for device, handle in found if handle}
