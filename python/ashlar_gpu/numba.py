"""numba on Ashlar's allocator: a plug-in of numba's External Memory Management, for numba.cuda and for numba-cuda.

    export NUMBA_CUDA_MEMORY_MANAGER=ashlar_gpu.numba     # nothing in the program changes

    import ashlar_gpu.numba                               # or in the program, before CUDA's first use
    ashlar_gpu.numba.install(conf="max_split_size_mb:128")

numba does not say which stream an array is for, so a block belongs to the default stream. Streams of numba wait for the
default stream and it for them, but not for each other. So an array that is used on another stream is told:

    with ashlar_gpu.numba.stream(s): x = cuda.device_array(n)   # it is for stream s
    ashlar_gpu.numba.record_stream(x, s)                        # or: s uses it too

Freed: when the array dies, at once, but within cuda.defer_cleanup() at its end. numba's own allocator waits until ten
arrays or a fifth of the memory are dead. Pinned, mapped and managed memory stay numba's own.

Errors: memory that is not enough raises OutOfMemoryError, which is numba's CudaAPIError of CUDA_ERROR_OUT_OF_MEMORY, a
MemoryError and _library.Error. Threads: as numba.
"""

import contextlib
import ctypes
import threading
import weakref

from numba import cuda
from numba.cuda.cudadrv import driver

from . import _library as c
from . import allocator

CUDA_ERROR_OUT_OF_MEMORY = 2
_streams = threading.local()


class OutOfMemoryError(driver.CudaAPIError, c.OutOfMemoryError):
    def __init__(self, text):
        driver.CudaAPIError.__init__(self, CUDA_ERROR_OUT_OF_MEMORY, text)
        self.status = c.OUT_OF_MEMORY


def _handle(stream):
    """Of numba's Stream, of any object of the protocol __cuda_stream__, or of an int."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    handle = getattr(stream, "handle", stream)
    return int(getattr(handle, "value", handle) or 0)


@contextlib.contextmanager
def stream(stream):
    """Arrays that this thread makes within it belong to this stream."""
    before = getattr(_streams, "current", 0)
    _streams.current = allocator.stream_of(_handle(stream))
    try:
        yield
    finally:
        _streams.current = before


def record_stream(array, stream):
    """`stream` uses the array too: once the array is dead, its memory waits for that stream's work so far."""
    device = cuda.current_context().device.id
    block = c.find_block(c.process_allocator(device), array.gpu_data.device_pointer_value)  # of a view: what it lies in
    allocator.record_stream(block.address, _handle(stream), device)


def install(conf=None):
    """Makes this numba's memory manager, and takes over settings. RuntimeError: CUDA is in use already."""
    if driver.driver.is_initialized and any(device.primary_context for device in driver.driver.devices.values()):
        raise RuntimeError("numba has used CUDA already: call ashlar_gpu.numba.install() before, or set "
                           "NUMBA_CUDA_MEMORY_MANAGER=ashlar_gpu.numba")
    if conf is not None:
        allocator.configure(conf)
    cuda.set_memory_manager(MemoryManager)


def _pointer(address):
    """As this numba wants it: it may call CUDA by NVIDIA's bindings or by ctypes."""
    binding = getattr(driver, "binding", None)
    return binding.CUdeviceptr(address) if binding else ctypes.c_uint64(address)


class MemoryManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
    """The plug-in, one for each context of numba's."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.blocks = {}  # address -> numba's owner of it, which dies with the last view
        self.device = None  # until CUDA is used

    @property
    def interface_version(self):
        return 1

    def initialize(self):
        if self.device is None:
            c.library()
            self.device = int(getattr(self.context.device, "id", self.context.device))

    def free(self, address):
        allocator.free(address, self.device)

    def memalloc(self, size):
        stream = getattr(_streams, "current", 0)
        try:
            address = allocator.allocate(size, stream, self.device)
        except c.OutOfMemoryError:
            address = self._allocate_again(size, stream)
        if not address:
            return driver.MemoryPointer(weakref.proxy(self.context), _pointer(0), 0)
        memory = driver.AutoFreePointer(weakref.proxy(self.context), _pointer(address), size,
                                        finalizer=lambda: self._drop(address, size))
        self.blocks[address] = memory
        return memory.own()

    def _drop(self, address, size):
        """numba's finalizer: the array and its views are dead."""
        self.blocks.pop(address, None)
        # A queue without a capacity frees at once, but within defer_cleanup.
        self.deallocations.add_item(self.free, address, size)

    def _allocate_again(self, size, stream):
        """What is dead and deferred may be enough, as in numba's own allocator."""
        self.deallocations.clear()
        try:
            return allocator.allocate(size, stream, self.device)
        except c.OutOfMemoryError as error:
            raise OutOfMemoryError(str(error)) from None

    def get_memory_info(self):
        """What the GPU has free, with what lies free in the cache."""
        free, total = _driver_memory_info()
        held = c.statistics(c.process_allocator(self.device))
        return driver.MemoryInfo(free=free + held.reserved_bytes - held.active_bytes, total=total)

    def get_ipc_handle(self, memory):
        """Of the whole segment that the block lies in: the other process can reach its neighbours too."""
        try:
            return super().get_ipc_handle(memory)
        except driver.CudaAPIError as error:
            raise RuntimeError("ashlar: CUDA gave no IPC handle of this memory; segments under expandable_segments have "
                               f"none: {error}") from error

    def reset(self):
        """Frees what numba allocated, and returns the cache to the GPU, whose context numba may destroy next."""
        self.blocks.clear()
        super().reset()
        if self.device is not None:
            allocator.empty_cache(self.device)


def _driver_memory_info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    error = ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    if error:
        raise driver.CudaAPIError(error, "Call to cuMemGetInfo results in an error")
    return free.value, total.value


_numba_memory_manager = MemoryManager  # the name that NUMBA_CUDA_MEMORY_MANAGER looks for
