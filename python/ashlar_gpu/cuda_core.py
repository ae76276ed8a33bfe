"""cuda.core on Ashlar's allocator: a MemoryResource.

    from cuda.core import Device
    from ashlar_gpu.cuda_core import MemoryResource
    device = Device()
    device.set_current()
    device.memory_resource = MemoryResource(device)       # Device.allocate uses it from now on
    buffer = device.allocate(300 << 20, stream=stream)
    buffer.close(stream)

A buffer belongs to the stream that it was allocated on. Closed on that stream, it serves the stream's next request at
once; closed on another one, it waits until that stream has done its work so far. Without a stream it is for the default
stream; the per-thread default stream is refused, as it is another stream in each thread.

Errors: OutOfMemoryError, which is a MemoryError, with where every byte is. Threads: as cuda.core.
Releases: cuda.core 0.3 to 1.2, also as cuda.core.experimental. Not offered: sharing with other processes (IPC), requests
of a graph that is being built (cuda.core has a GraphMemoryResource).
"""

import inspect

try:
    from cuda.core import Buffer
    from cuda.core import MemoryResource as _Base
except ImportError:  # releases before 0.5
    from cuda.core.experimental import Buffer
    from cuda.core.experimental import MemoryResource as _Base

from . import _library as c
from . import allocator

_KEEPS_STREAM = "stream" in inspect.signature(Buffer.from_handle).parameters  # for a buffer that nobody closes


def _handle(stream):
    if stream is None:
        return 0
    if hasattr(stream, "is_building"):
        raise c.Error(c.INVALID_ARGUMENT, "ashlar: a graph that is being built takes memory of its own: allocate from "
                      "cuda.core's GraphMemoryResource")
    return _made(stream)


def _made(stream):
    if not hasattr(stream, "__cuda_stream__"):
        raise TypeError(f"ashlar: the stream is a cuda.core Stream, and not {stream!r}")
    return int(stream.__cuda_stream__()[1])


class MemoryResource(_Base):
    """Of one GPU; all of the same GPU share the process's allocator. `conf`: settings, before it is open."""

    def __init__(self, device=0, conf=None):
        if conf is not None:
            allocator.configure(conf)
        self._device_id = int(getattr(device, "device_id", device))
        self._streams = {}  # address -> the stream that the block belongs to
        c.library()

    def allocate(self, size, stream=None):
        handle = allocator.stream_of(_handle(stream))
        address = allocator.allocate(size, handle, self._device_id)
        if address:
            self._streams[address] = handle
        keeps = {"stream": stream} if _KEEPS_STREAM and stream is not None else {}
        return Buffer.from_handle(address, size, mr=self, **keeps)

    def deallocate(self, ptr, size, stream=None):
        address = allocator.number_of(ptr, "the address")
        if not address:
            return
        handle = None if stream is None else _made(stream)
        own = self._streams.pop(address, None)
        if handle is not None:
            if handle != own and not (own == 0 and handle == allocator.LEGACY_STREAM):
                allocator.record_stream(address, handle, self._device_id)
        allocator.free(address, self._device_id)

    @property
    def is_device_accessible(self):
        return True

    @property
    def is_host_accessible(self):
        return False

    @property
    def device_id(self):
        return self._device_id
