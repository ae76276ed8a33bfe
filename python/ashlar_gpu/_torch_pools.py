"""torch.cuda.MemPool and torch.cuda.use_mem_pool, for a process whose allocator is Ashlar's.

PyTorch's own MemPool asks the allocator for what a pluggable one cannot answer; these ask Ashlar's instead. A pool belongs
to the device that was current when it was made; its id is one of torch.cuda.graph_pool_handle(), so that no graph has the
same. Threads: a pool is used by one thread at a time.
"""

import contextlib

from . import _library as c
from . import _torch_plugin as plugin


class MemPool:
    """A private pool: memory that only requests within use_mem_pool(pool) use. Its memory goes back when it ends."""

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        import torch

        if allocator is not None:
            raise RuntimeError("ashlar: torch.cuda.MemPool: a pool has no allocator of its own in a process whose allocator "
                               "is Ashlar's: leave `allocator` out, or do not call ashlar_gpu.torch.install")
        self.device = torch.cuda.current_device()
        self._handle = c.process_allocator(self.device)
        pool = c.Pool(*torch.cuda.graph_pool_handle())
        while c.library().ashlar_pool_users(self._handle, pool):  # one that ashlar_create_pool made, in the same process
            pool = c.Pool(*torch.cuda.graph_pool_handle())
        c.check(c.library().ashlar_retain_pool(self._handle, pool))
        self._pool = pool
        if use_on_oom or no_split:
            c.check(c.library().ashlar_configure_pool(self._handle, self._pool, use_on_oom, no_split))

    @property
    def id(self):
        return self._pool.first, self._pool.second

    @property
    def allocator(self):
        return None

    def use_count(self):
        return c.library().ashlar_pool_users(self._handle, self._pool)

    def snapshot(self, include_traces=True):
        """The pool's segments, as torch.cuda.memory_snapshot has them."""
        import torch

        return torch._C._cuda_memorySnapshot((*self.id, include_traces))["segments"]

    def __del__(self):
        if getattr(self, "_pool", None) is None:
            return
        if c.library().ashlar_release_pool(self._handle, self._pool) == c.OK:
            c.library().ashlar_empty_pool(self._handle, self._pool)  # refused while a graph uses it: it ends with that


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Requests of this thread on the device come from the pool."""
    handle, id_ = c.process_allocator(pool.device), pool._pool
    if device is not None and _index(device) != pool.device:
        raise RuntimeError(f"ashlar: torch.cuda.use_mem_pool: the pool is of device {pool.device}, and not of {device}: make "
                           "one while that device is current")
    c.check(plugin.library().ashlar_torch_begin_thread_pool(pool.device, id_))
    try:
        yield
    finally:
        c.check(c.library().ashlar_end_pool(handle, id_))
        c.check(c.library().ashlar_release_pool(handle, id_))


def _index(device):
    import torch

    return torch.cuda._utils._get_device_index(device, optional=True)
