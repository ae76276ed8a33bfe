"""The allocator of this process, one for each GPU, that all integrations of Python share: numba, cuda.core, CuPy, PyTorch.

    from ashlar_gpu import allocator
    allocator.configure("max_split_size_mb:128")        # before the first allocation; else ASHLAR_CONF
    allocator.statistics()["reserved_bytes"]
    address = allocator.allocate(300 << 20, stream=0)   # what ctypes, a C library or a kernel launch can use
    allocator.free(address)

`device` is the number of the GPU as CUDA counts them. Sizes are bytes, addresses and streams ints. A block belongs to
the stream that it was allocated for: once freed it serves that stream's next request at once, in the order of its work.
Work on another stream is told by record_stream before the free. Errors: _library.Error, OutOfMemoryError; TypeError and
ValueError where a size, an address or a stream is none.
"""

import functools
import operator

from . import _library as c
from ._library import Error, OutOfMemoryError

__all__ = ["Error", "OutOfMemoryError", "allocate", "configure", "dump_snapshot", "empty_cache", "free", "record_stream",
           "reset_peaks", "set_memory_limit", "settings", "start_recording", "statistics", "stop_recording", "stream_of",
           "torch_statistics"]

LEGACY_STREAM, PER_THREAD_STREAM = 1, 2  # CU_STREAM_LEGACY, CU_STREAM_PER_THREAD


@functools.cache
def _of(device):
    return c.process_allocator(device)


def number_of(value, what):
    """An int of 0 to 2^64 - 1: also of what is one by its __int__, as the addresses of CUDA's Python packages are."""
    try:
        number = operator.index(value)
    except TypeError:
        if isinstance(value, float) or not hasattr(value, "__int__"):
            raise TypeError(f"ashlar: {what} is an int, and not {value!r}") from None
        number = int(value)
    if not 0 <= number < 1 << 64:
        raise ValueError(f"ashlar: {what} is an int from 0 to 2^64 - 1, and not {number}")
    return number


def stream_of(stream):
    """The handle of the stream that a block is to belong to; CUDA's two names of the default stream are one."""
    handle = number_of(stream, "the stream")
    if handle == PER_THREAD_STREAM:
        raise Error(c.INVALID_ARGUMENT, "ashlar: the per-thread default stream is another stream in each thread, and a "
                    "block belongs to one stream: allocate on the default stream or on a stream that was made")
    return 0 if handle == LEGACY_STREAM else handle


def configure(conf):
    """The settings of allocators that are not open yet; None: those of ASHLAR_CONF again. ashlar guide settings"""
    c.configure_process(conf)


def settings(device=0):
    """The settings in force, as text."""
    return c.conf(_of(device))


def allocate(size_bytes, stream=0, device=0):
    """The address of at least so many bytes; 0 for none."""
    size, handle = number_of(size_bytes, "the size in bytes"), stream_of(stream)
    return c.allocate(_of(device), size, handle)


def free(address, device=0):
    number = number_of(address, "the address")
    c.free(_of(device), number)


def record_stream(address, stream, device=0):
    """`stream` uses the block too: once freed, it waits for that stream's work so far."""
    number, handle = number_of(address, "the address"), number_of(stream, "the stream")
    c.record_stream(_of(device), number, 0 if handle == LEGACY_STREAM else handle)


def statistics(device=0):
    """Bytes and counts by name: allocated_bytes, reserved_bytes, allocations, device_allocations and their like."""
    return c.statistics(_of(device)).as_dict()


def reset_peaks(device=0):
    """Every peak is the current value again."""
    c.reset_peaks(_of(device))


def torch_statistics(device=0):
    """The same by the names of torch.cuda.memory_stats."""
    return c.torch_statistics(_of(device))


def empty_cache(device=0):
    """Waits for pending frees, and returns what no block is in to the GPU."""
    c.empty_cache(_of(device))


def set_memory_limit(size_bytes, device=0):
    """At most so much of the GPU's memory; None: no such limit."""
    limit = c.NO_LIMIT if size_bytes is None else number_of(size_bytes, "the size in bytes")
    c.set_memory_limit(_of(device), limit)


def dump_snapshot(path, device=0):
    """Writes the state into a file for `ashlar explain`."""
    c.dump_snapshot(_of(device), path)


def start_recording(path, device=0):
    """Writes everything from now on, until stop_recording or the end of the process."""
    c.start_recording(_of(device), path)


def stop_recording(device=0):
    c.stop_recording(_of(device))
