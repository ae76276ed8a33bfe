"""CuPy on Ashlar's allocator.

    import cupy, ashlar_gpu.cupy
    ashlar_gpu.cupy.install(conf="max_split_size_mb:128")   # before the first array

A block belongs to the stream that is CuPy's current one in the allocating thread. CuPy frees without a stream, so a block
serves that stream's next request at once. An array that another stream uses is told:

    ashlar_gpu.cupy.record_stream(x, stream)

Releases: CuPy 14.1 and later by C functions, 13 and 14.0 by functions of Python. Errors: MemoryError with where every byte
is. The per-thread default stream (CUPY_CUDA_PER_THREAD_DEFAULT_STREAM) is
refused with a ValueError or Error. Threads: as CuPy. cupy.cuda.set_allocator(None) takes it off again; arrays that are
alive free themselves.

It ran against CuPy's own classes of memory; whole programs of CuPy need a GPU, and were not run.
"""

import ctypes

import cupy
from cupy_backends.cuda import stream as _stream

from . import _library as c
from . import _native
from . import allocator

LIBRARY = "libashlar_cupy.so"


class _Param(ctypes.Structure):
    """CupyParam of allocator/plugins/cupy_functions.cc."""

    _fields_ = [("current_stream", ctypes.c_void_p)]


def _current_stream_function():
    """The address of CuPy's own function, which it exports for Cython; None where a release has it no more."""
    capsule = getattr(_stream, "__pyx_capi__", {}).get("get_current_stream_ptr")
    if capsule is None:
        return None
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name(capsule)
    return pointer(capsule, signature) if signature == b"intptr_t (void)" else None


class Functions:
    """The C functions and what they take, as CFunctionAllocator wants them: four numbers' worth of addresses."""

    def __init__(self, current_stream):
        c.library()  # libashlar_cupy.so finds it loaded, under its soname
        self.library = ctypes.CDLL(_native.library(LIBRARY))
        self.param = _Param(current_stream)
        self.arguments = (ctypes.addressof(self.param), *(ctypes.cast(function, ctypes.c_void_p).value for function in (
            self.library.ashlar_cupy_malloc, self.library.ashlar_cupy_free)))


def malloc(size, device):
    """For PythonFunctionAllocator, as `free` below."""
    return allocator.allocate(size, cupy.cuda.get_current_stream().ptr, device)


def free(address, device):
    allocator.free(address, device)


def _takes_exceptions():
    """Whether CuPy hands on what a C function throws: since 14.1. Before, out of memory would end the process."""
    return tuple(int(part) for part in cupy.__version__.split(".")[:2]) >= (14, 1)


def functions(calls=None):
    """CuPy's allocator object over ours. `calls`: "c" as C functions, "python" as Python's, about ten times slower; None:
    the first where CuPy is 14.1 or later, else the second."""
    if calls is None:
        calls = "c" if _takes_exceptions() and _current_stream_function() else "python"
    if calls == "python":
        return cupy.cuda.PythonFunctionAllocator(malloc, free)
    if calls != "c":
        raise ValueError(f'ashlar: calls is "c" or "python", and not {calls!r}')
    current_stream = _current_stream_function()
    if current_stream is None or not _takes_exceptions():
        raise ImportError(f"ashlar: C functions need CuPy 14.1 or later, and this is {cupy.__version__}: leave out `calls`")
    own = Functions(current_stream)
    return cupy.cuda.CFunctionAllocator(*own.arguments, own)


def install(conf=None, calls=None):
    """Makes it CuPy's allocator, in all threads, and takes over settings."""
    if conf is not None:
        allocator.configure(conf)
    cupy.cuda.set_allocator(functions(calls).malloc)


def record_stream(array, stream):
    """`stream` uses the array too: once the array is dead, its memory waits for that stream's work so far."""
    memory = array.data.mem
    allocator.record_stream(memory.ptr, stream.ptr, memory.device_id)
