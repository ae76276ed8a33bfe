"""Tags of what PyTorch allocates, sleep and wake by them, and what is registered and does not sleep: ashlar_gpu.torch.tag,
sleep, wake, register_range (docs/library/sleep.md).

    tags = Tags(lambda: torch.cuda.MemPool())
    with tags.scope("rollout"):                  # what this thread allocates comes from a pool with that tag
        cache = torch.empty(1 << 30, device="cuda")
    sleep(["rollout"], keep="host")

A pool has one scope at a time, and several pools may have one tag: a scope takes one that none has now. Threads: any.
"""

import contextlib
import threading
import warnings

import torch

from . import _library as c

KEEPS = {"host": c.KEEP_HOST, "nothing": c.KEEP_NOTHING, "file": c.KEEP_FILE}


def _handle(device):
    return c.process_allocator(torch.cuda._utils._get_device_index(device, optional=True))


def segments_of(pool):
    """Of the pool with this id, as torch.cuda.memory_snapshot has them."""
    return torch._C._cuda_memorySnapshot((*pool, False))["segments"]


class Tags:
    """`new_pool()`: a MemPool of the current device, of a process whose allocator is Ashlar's."""

    def __init__(self, new_pool):
        self._new_pool = new_pool
        self._pools = {}  # (device, tag) -> its pools; they are kept as long as the process
        self._idle = {}  # the same, those that no scope has
        self._lock = threading.Lock()

    def _take(self, device, tag):
        with self._lock:
            if self._idle.setdefault((device, tag), []):
                return self._idle[device, tag].pop()
        with torch.cuda.device(device):
            pool = self._new_pool()
        c.tag_pool(c.process_allocator(device), c.Pool(*pool.id), tag)
        with self._lock:
            self._pools.setdefault((device, tag), []).append(pool)
        return pool

    def segments(self, tag, device=None):
        """As torch.cuda.memory_snapshot has them, asleep or not."""
        index = torch.cuda._utils._get_device_index(device, optional=True)
        with self._lock:
            pools = list(self._pools.get((index, tag), ()))
        return [segment for pool in pools for segment in segments_of(pool.id)]

    @contextlib.contextmanager
    def scope(self, tag, device=None):
        index = torch.cuda._utils._get_device_index(device, optional=True)
        pool = self._take(index, tag)
        try:
            with torch.cuda.use_mem_pool(pool, index):
                yield
        finally:
            with self._lock:
                self._idle[index, tag].append(pool)


def sleep(tags, keep="host", host_limit=None, folder=None, device=None, pools=(), progress=None):
    """The bytes that went back to the device. `pools`: ids, as torch.cuda.MemPool and CUDAGraph tell them."""
    if keep not in KEEPS:
        raise c.Error(c.INVALID_ARGUMENT, f"ashlar: sleep: keep is \"host\", \"nothing\" or \"file\", and not {keep!r}")
    limit = c.NO_LIMIT if host_limit is None else host_limit
    report = c.sleep(_handle(device), tags, KEEPS[keep], limit, folder, pools, progress)
    if report.left_bytes:
        warnings.warn(f"ashlar: sleep: pools of {report.left_bytes >> 20} MiB stay awake, since ranges of them are registered, or "
                      "another process has a tensor of them: ashlar_gpu.torch.held() names them", stacklevel=3)
    return report.returned_bytes


def wake(tags, device=None, pools=(), progress=None):
    try:
        c.wake(_handle(device), tags, pools, progress)
    except c.OutOfMemoryError as error:
        raise torch.cuda.OutOfMemoryError(str(error)) from None


def is_asleep(address, device=None):
    return c.is_asleep(_handle(device), address)


def held(device=None):
    return c.held(_handle(device))


def register_range(tensor):
    storage = tensor.untyped_storage()
    c.register_range(_handle(tensor.device), storage.data_ptr(), storage.nbytes())


def unregister_range(tensor):
    c.unregister_range(_handle(tensor.device), tensor.untyped_storage().data_ptr())
