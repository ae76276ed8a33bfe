"""The C interface (include/ashlar.h) as Python sees it: the library, its functions with their types, and its errors.

    from ashlar_gpu import _library as c
    handle = c.process_allocator(0)
    address = c.allocate(handle, 300 << 20, stream=0)
    c.free(handle, address)

Handles, addresses and streams are ints, 0 is NULL; sizes are bytes. A call that fails raises Error, with the status and
the C text; memory that is not enough raises OutOfMemoryError, which is a MemoryError too.

Loading: the first use of a function loads libashlar.so.1, looked for as _native says; importing this module loads
nothing. Threads: any thread; the interpreter's lock is given up during a call, since a call may wait for the device.
"""

import ctypes
import functools

from . import _errors, _native

ABI_VERSION = 1
SONAME = f"libashlar.so.{ABI_VERSION}"

OK, OUT_OF_MEMORY, INVALID_ARGUMENT, FAILED_PRECONDITION, UNAVAILABLE, DEVICE_ERROR, INTERNAL = range(7)
STATUS_NAMES = ("OK", "OUT_OF_MEMORY", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAVAILABLE", "DEVICE_ERROR", "INTERNAL")
MEMORY_CUDA, MEMORY_HOST, MEMORY_SIMULATED = range(3)
ROUTE_PLAIN, ROUTE_CAPTURE = range(2)
KEEP_HOST, KEEP_NOTHING, KEEP_FILE = range(3)
NO_LIMIT = 2**64 - 1  # of set_memory_limit


class Error(_errors.Error):
    """A call failed: `status` is one of the numbers above, the text is the library's own."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class OutOfMemoryError(Error, MemoryError):
    """The device's memory is not enough, after everything was tried. The text says where every byte is."""


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("conf", ctypes.c_char_p), ("memory", ctypes.c_int32),
                ("device", ctypes.c_int32), ("capacity_bytes", ctypes.c_uint64)]


class Block(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("address", ctypes.c_void_p), ("size_bytes", ctypes.c_uint64),
                ("requested_bytes", ctypes.c_uint64), ("segment_address", ctypes.c_void_p),
                ("segment_bytes", ctypes.c_uint64)]


class Pool(ctypes.Structure):
    _fields_ = [("first", ctypes.c_uint64), ("second", ctypes.c_uint64)]


class Statistics(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "allocated_bytes", "peak_allocated_bytes", "requested_bytes", "peak_requested_bytes", "active_bytes",
        "peak_active_bytes", "reserved_bytes", "peak_reserved_bytes", "allocations", "frees", "device_allocations",
        "device_frees", "retries", "out_of_memory_errors", "total_bytes", "stream_waits")]

    def as_dict(self):
        return {name: getattr(self, name) for name, _ in self._fields_[1:]}


SleepProgress = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


class SleepOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("tags", ctypes.POINTER(ctypes.c_char_p)), ("tag_count", ctypes.c_size_t),
                ("pools", ctypes.POINTER(Pool)), ("pool_count", ctypes.c_size_t), ("keep", ctypes.c_int32),
                ("host_limit_bytes", ctypes.c_uint64), ("folder", ctypes.c_char_p), ("progress", SleepProgress),
                ("context", ctypes.c_void_p)]


class SleepReport(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("returned_bytes", ctypes.c_uint64), ("kept_host_bytes", ctypes.c_uint64),
                ("kept_file_bytes", ctypes.c_uint64), ("left_bytes", ctypes.c_uint64)]


class SharedPage(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("address", ctypes.c_void_p), ("size_bytes", ctypes.c_uint64),
                ("file", ctypes.c_int32)]


StreamFilter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ReleaseContext = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
AllocateSegment = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
FreeSegment = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
VisitHeld = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
VisitStatistic = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)
FreeMemory = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
Visit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # of segments, pools and events: the struct's address

_HANDLE, _STREAM, _MEMORY, _STATUS = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32
_SIZE, _U64, _TEXT = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p
_OUT_HANDLE, _OUT_MEMORY = ctypes.POINTER(_HANDLE), ctypes.POINTER(_MEMORY)
# Name without "ashlar_" -> what it returns, and its arguments. One row for each function of the header, in its order.
SIGNATURES = {
    "abi_version": (ctypes.c_uint32, []),
    "version": (_TEXT, []),
    "last_error": (_TEXT, []),
    "process_allocator": (_STATUS, [ctypes.c_int, _OUT_HANDLE]),
    "configure_process": (_STATUS, [_TEXT]),
    "open": (_STATUS, [ctypes.POINTER(OpenOptions), _OUT_HANDLE]),
    "close": (_STATUS, [_HANDLE]),
    "device": (ctypes.c_int, [_HANDLE]),
    "allocate": (_STATUS, [_HANDLE, _SIZE, _STREAM, _OUT_MEMORY]),
    "free": (_STATUS, [_HANDLE, _MEMORY]),
    "record_stream": (_STATUS, [_HANDLE, _MEMORY, _STREAM]),
    "find_block": (_STATUS, [_HANDLE, _MEMORY, ctypes.POINTER(Block)]),
    "share_page": (_STATUS, [_HANDLE, _MEMORY, ctypes.POINTER(SharedPage)]),
    "holds": (ctypes.c_int, [_HANDLE, _MEMORY]),
    "may_hold": (ctypes.c_int, [_HANDLE, _MEMORY]),
    "allocate_at": (_STATUS, [_HANDLE, _MEMORY, _SIZE, _SIZE]),
    "allocate_exactly": (_STATUS, [_HANDLE, _SIZE, _STREAM, _MEMORY]),
    "poll": (_STATUS, [_HANDLE]),
    "empty_cache": (_STATUS, [_HANDLE]),
    "add_free_memory_callback": (_STATUS, [_HANDLE, FreeMemory, ctypes.c_void_p]),
    "set_memory_fraction": (_STATUS, [_HANDLE, ctypes.c_double]),
    "set_memory_limit": (_STATUS, [_HANDLE, _U64]),
    "create_pool": (_STATUS, [_HANDLE, ctypes.POINTER(Pool)]),
    "retain_pool": (_STATUS, [_HANDLE, Pool]),
    "release_pool": (_STATUS, [_HANDLE, Pool]),
    "pool_users": (_U64, [_HANDLE, Pool]),
    "configure_pool": (_STATUS, [_HANDLE, Pool, ctypes.c_int, ctypes.c_int]),
    "set_pool_memory": (_STATUS, [_HANDLE, Pool, AllocateSegment, FreeSegment, ctypes.c_void_p, ReleaseContext]),
    "begin_pool": (_STATUS, [_HANDLE, Pool, ctypes.c_int32, StreamFilter, ctypes.c_void_p, ReleaseContext]),
    "end_pool": (_STATUS, [_HANDLE, Pool]),
    "begin_capture": (_STATUS, [_HANDLE, Pool]),
    "end_capture": (_STATUS, [_HANDLE, Pool]),
    "empty_pool": (_STATUS, [_HANDLE, Pool]),
    "allocate_in_pool": (_STATUS, [_HANDLE, Pool, _SIZE, _STREAM, _OUT_MEMORY]),
    "tag_pool": (_STATUS, [_HANDLE, Pool, _TEXT]),
    "sleep": (_STATUS, [_HANDLE, ctypes.POINTER(SleepOptions), ctypes.POINTER(SleepReport)]),
    "wake": (_STATUS, [_HANDLE, ctypes.POINTER(SleepOptions)]),
    "is_asleep": (ctypes.c_int, [_HANDLE, _MEMORY]),
    "visit_held_parts": (_STATUS, [_HANDLE, VisitHeld, ctypes.c_void_p]),
    "register_range": (_STATUS, [_HANDLE, _MEMORY, _SIZE]),
    "unregister_range": (_STATUS, [_HANDLE, _MEMORY]),
    "get_statistics": (_STATUS, [_HANDLE, ctypes.POINTER(Statistics)]),
    "visit_pools": (_STATUS, [_HANDLE, Visit, ctypes.c_void_p]),
    "reset_peaks": (_STATUS, [_HANDLE]),
    "torch_statistics": (_STATUS, [_HANDLE, VisitStatistic, ctypes.c_void_p]),
    "visit_segments": (_STATUS, [_HANDLE, Visit, ctypes.c_void_p]),
    "observe": (_STATUS, [_HANDLE, Visit, ctypes.c_void_p]),
    "conf": (_TEXT, [_HANDLE]),
    "change_settings": (_STATUS, [_HANDLE, _TEXT]),
    "dump_snapshot": (_STATUS, [_HANDLE, _TEXT]),
    "start_recording": (_STATUS, [_HANDLE, _TEXT]),
    "stop_recording": (_STATUS, [_HANDLE]),
    "start_ring": (_STATUS, [_HANDLE, _U64]),
    "write_ring": (_STATUS, [_HANDLE, _TEXT]),
}


@functools.cache
def library():
    """The library itself: `library().ashlar_free` and its like, with their types set. ImportError: it is not there, or
    it is another version than this module was written for."""
    path = _native.library(SONAME)
    found = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(found, "ashlar_" + name)
        except AttributeError:
            raise ImportError(f"{path} has no ashlar_{name}: install the ashlar that belongs to this package") from None
        function.restype, function.argtypes = result, arguments
    version = found.ashlar_abi_version()
    if version != ABI_VERSION:
        raise ImportError(f"{path} has version {version} of the C interface, and not {ABI_VERSION}: install the ashlar "
                          "that belongs to this package")
    return found


def last_error():
    return library().ashlar_last_error().decode("utf-8", "replace")


def check(status):
    """Raises what a status says. To be called on the thread of the call that returned it, before its next one."""
    if status == OK:
        return
    text = last_error() or f"ashlar: status {status}"
    raise OutOfMemoryError(status, text) if status == OUT_OF_MEMORY else Error(status, text)


def _bytes(text):
    return None if text is None else str(text).encode()


def process_allocator(device=0):
    handle = ctypes.c_void_p()
    check(library().ashlar_process_allocator(device, ctypes.byref(handle)))
    return handle.value


def configure_process(conf):
    check(library().ashlar_configure_process(_bytes(conf)))


def open_allocator(conf=None, memory=MEMORY_CUDA, device=0, capacity_bytes=0):
    options = OpenOptions(ctypes.sizeof(OpenOptions), _bytes(conf), memory, device, capacity_bytes)
    handle = ctypes.c_void_p()
    check(library().ashlar_open(ctypes.byref(options), ctypes.byref(handle)))
    return handle.value


def close(handle):
    check(library().ashlar_close(handle))


def allocate(handle, size_bytes, stream=0):
    """The address, 0 for no bytes."""
    memory = ctypes.c_void_p()
    check(library().ashlar_allocate(handle, size_bytes, stream, ctypes.byref(memory)))
    return memory.value or 0


def free(handle, address):
    check(library().ashlar_free(handle, address))


def record_stream(handle, address, stream):
    check(library().ashlar_record_stream(handle, address, stream))


def find_block(handle, address):
    block = Block(struct_size=ctypes.sizeof(Block))
    check(library().ashlar_find_block(handle, address, ctypes.byref(block)))
    return block


def empty_cache(handle):
    check(library().ashlar_empty_cache(handle))


def tag_pool(handle, pool, tag):
    check(library().ashlar_tag_pool(handle, pool, _bytes(tag)))


def _sleep_options(tags, pools, keep=KEEP_HOST, host_limit_bytes=NO_LIMIT, folder=None, progress=None):
    names, ids = (ctypes.c_char_p * len(tags))(*map(_bytes, tags)), (Pool * len(pools))(*(Pool(*id) for id in pools))
    told = SleepProgress() if progress is None else SleepProgress(lambda _, copied, all_bytes: progress(copied, all_bytes))
    return SleepOptions(ctypes.sizeof(SleepOptions), names, len(tags), ids, len(pools), keep, host_limit_bytes, _bytes(folder), told)


def sleep(handle, tags, keep=KEEP_HOST, host_limit_bytes=NO_LIMIT, folder=None, pools=(), progress=None):
    """The pools with these tags, and those of these ids; nothing named: all. A SleepReport."""
    report = SleepReport(struct_size=ctypes.sizeof(SleepReport))
    options = _sleep_options(tags, pools, keep, host_limit_bytes, folder, progress)
    check(library().ashlar_sleep(handle, ctypes.byref(options), ctypes.byref(report)))
    return report


def wake(handle, tags, pools=(), progress=None):
    """The pools with these tags, and those of these ids; nothing named: all that sleep."""
    check(library().ashlar_wake(handle, ctypes.byref(_sleep_options(tags, pools, progress=progress))))


def is_asleep(handle, address):
    return bool(library().ashlar_is_asleep(handle, address))


def held(handle):
    """[(owner, bytes)] of the device's memory in use, the largest part first."""
    out = []
    visit = VisitHeld(lambda _, owner, size_bytes: out.append((owner.decode(), size_bytes)))
    check(library().ashlar_visit_held_parts(handle, visit, None))
    return out


def register_range(handle, address, size_bytes):
    check(library().ashlar_register_range(handle, address, size_bytes))


def unregister_range(handle, address):
    check(library().ashlar_unregister_range(handle, address))


def statistics(handle):
    out = Statistics(struct_size=ctypes.sizeof(Statistics))
    check(library().ashlar_get_statistics(handle, ctypes.byref(out)))
    return out


def torch_statistics(handle):
    """The values of torch.cuda.memory_stats, by its names and in its order."""
    out = {}

    def visit(_, name, value):
        out[name.decode()] = value

    check(library().ashlar_torch_statistics(handle, VisitStatistic(visit), None))
    return out


def reset_peaks(handle):
    check(library().ashlar_reset_peaks(handle))


def conf(handle):
    return library().ashlar_conf(handle).decode()


def dump_snapshot(handle, path):
    check(library().ashlar_dump_snapshot(handle, _bytes(path)))


def set_memory_fraction(handle, fraction):
    check(library().ashlar_set_memory_fraction(handle, fraction))


def set_memory_limit(handle, size_bytes):
    check(library().ashlar_set_memory_limit(handle, size_bytes))


def start_recording(handle, path):
    check(library().ashlar_start_recording(handle, _bytes(path)))


def stop_recording(handle):
    check(library().ashlar_stop_recording(handle))


def start_ring(handle, size_bytes):
    check(library().ashlar_start_ring(handle, size_bytes))


def write_ring(handle, path):
    check(library().ashlar_write_ring(handle, _bytes(path)))


def change_settings(handle, conf_text):
    check(library().ashlar_change_settings(handle, _bytes(conf_text)))
