"""Sleep by the names that callers of vLLM's cumem and of torch_memory_saver use, over ashlar_gpu.torch (docs/library/sleep.md).

    from ashlar_gpu.sleepers import CuMemAllocator, torch_memory_saver

    with CuMemAllocator.get_instance().use_memory_pool(tag="weights"): model = load()
    CuMemAllocator.get_instance().sleep(offload_tags="weights")       # what has another tag is lost
    CuMemAllocator.get_instance().wake_up()

    with torch_memory_saver.region(tag="weights", enable_cpu_backup=True): model = load()
    torch_memory_saver.pause("weights")
    torch_memory_saver.resume("weights")

Names are those of vLLM 0.33 and torch_memory_saver 0.0.10. Each class knows what was allocated by its own contexts alone, on
any device. What sleeps already stays as it is, and so does what is awake where it is to wake. What a class cannot do is one
warning where its caller can go on, else NotImplementedError. Errors and threads: as ashlar_gpu.torch.
"""

import contextlib
import dataclasses
import functools
import gc
import os
import threading
import warnings

import torch

from . import _torch_sleep
from . import torch as ashlar

__all__ = ["DEFERRABLE_TAGS", "CuMemAllocator", "TorchMemorySaver", "configure_subprocess", "cumem_available",
           "get_mem_allocator_instance", "torch_memory_saver"]

DEFERRABLE_TAGS = ("weights", "kv_cache")  # CuMemAllocator.wake_up leaves these alone asleep, where it is given others


def __getattr__(name):
    if name == "cumem_available":  # vLLM's own is of the time of its import
        return ashlar.is_installed()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _say(line):
    """Once a process."""
    warnings.warn(f"ashlar: {line}", stacklevel=4)


@dataclasses.dataclass(frozen=True)
class _Part:
    """What sleeps as one: all under a tag of Ashlar's, or the pool of a CUDA graph, which has none."""

    device: int
    tag: str  # the caller's
    name: str = None  # Ashlar's
    pool: tuple = None  # its id

    def segments(self):
        return ashlar._tags.segments(self.name, self.device) if self.pool is None else _torch_sleep.segments_of(self.pool)

    def is_there(self):
        """A pool whose graphs are gone is not."""
        return self.pool is None or bool(self.segments())

    def is_asleep(self):
        return any(_torch_sleep.is_asleep(segment["address"], self.device) for segment in self.segments())

    def can_sleep(self):
        if self.pool is None or all(segment["is_expandable"] for segment in self.segments()):
            return True
        _say("the memory of CUDA graphs stays awake: it sleeps under expandable_segments:True or policy:ashlar alone")
        return False


def _of_devices(parts):
    """(device, tags, pools), each with one of them at least: no names at all would mean everything."""
    of = {}
    for part in parts:
        if part.is_there():
            of.setdefault(part.device, []).append(part)
    for device, some in sorted(of.items()):
        yield device, sorted({part.name for part in some} - {None}), sorted({part.pool for part in some} - {None})


def _sleep(parts, keep, folder=None):
    for device, tags, pools in _of_devices(part for part in parts if part.can_sleep()):
        ashlar.sleep(*tags, keep=keep, folder=folder, device=device, pools=pools)


def _wake(parts):
    for device, tags, pools in _of_devices(parts):
        ashlar.wake(*tags, device=device, pools=pools)


def _names(tags):
    return {tags} if isinstance(tags, str) else set(tags)


class CuMemAllocator:
    """vllm.device_allocator.cumem.CuMemAllocator."""

    default_tag = "default"
    instance = None

    def __init__(self):
        self._keeps = {}  # part -> how it sleeps, or slept last; None: it never did
        self._graphs = {}  # device -> the MemPool that its graphs are captured in

    @classmethod
    def get_instance(cls):
        if cls.instance is None:
            cls.instance = cls()
        return cls.instance

    @contextlib.contextmanager
    def use_memory_pool(self, tag=None):
        name, device = self.default_tag if tag is None else tag, torch.cuda.current_device()
        with ashlar.tag(name, device):
            self._keeps.setdefault(_Part(device, name, name))
            yield

    @contextlib.contextmanager
    def cudagraph_pool(self):
        """The id of the pool to capture graphs in. It sleeps as the tag "cudagraph", where its memory can."""
        device = torch.cuda.current_device()
        if device not in self._graphs:
            self._graphs[device] = torch.cuda.MemPool()
        pool = tuple(self._graphs[device].id)
        self._keeps.setdefault(_Part(device, "cudagraph", pool=pool))
        yield pool

    def _put_to_sleep(self, wanted):
        """`wanted`: part -> keep."""
        gc.collect()
        asleep = {part for part in wanted if part.is_asleep()}
        for keep in ("host", "nothing"):
            parts = [part for part in wanted if wanted[part] == keep and part not in asleep]
            _sleep(parts, keep)
            self._keeps.update(dict.fromkeys(parts, keep))
        if any(self._keeps[part] != wanted[part] for part in asleep):
            warnings.warn("ashlar: what sleeps already stays kept or lost as it is", stacklevel=3)

    def sleep(self, offload_tags=None):
        """Everything: what has one of the tags is kept in memory of the host, and the rest is lost."""
        kept = _names(self.default_tag if offload_tags is None else offload_tags)
        self._put_to_sleep({part: "host" if part.tag in kept else "nothing" for part in list(self._keeps)})

    def discard(self, tags):
        """What has one of the tags; it is lost."""
        wanted = _names(tags)
        self._put_to_sleep({part: "nothing" for part in list(self._keeps) if part.tag in wanted})

    def wake_up(self, tags=None):
        """What has one of the tags, and all that has none of DEFERRABLE_TAGS."""
        stays = set() if tags is None else set(DEFERRABLE_TAGS) - _names(tags)
        gc.collect()
        _wake([part for part in list(self._keeps) if part.tag not in stays])

    def get_current_usage(self):
        """Bytes of the pools, asleep or not."""
        return sum(segment["total_size"] for part in list(self._keeps) for segment in part.segments())

    def release_pools(self):
        """What is free in the pools goes back. Pools with a live tensor, or of a graph, go with these."""
        self._graphs.clear()
        gc.collect()
        torch.cuda.empty_cache()

    close = release_pools


def get_mem_allocator_instance():
    """vllm.device_allocator.get_mem_allocator_instance."""
    return CuMemAllocator.get_instance()


# A tag of theirs has regions that sleep in other ways: keep -> Ashlar's tag.
TAGS = {"nothing": "{}", "host": "{} with backup", "file": "{} on disk"}


class TorchMemorySaver:
    """torch_memory_saver.TorchMemorySaver."""

    def __init__(self):
        self._keeps = {}  # part -> how it is to sleep
        self._region = threading.local()  # .depth: of this thread's contexts
        self._folder = None
        self.hook_mode = "torch"  # both of theirs are taken: memory comes from Ashlar, whichever it is

    @property
    def enabled(self):
        return ashlar.is_installed()

    @contextlib.contextmanager
    def _inside(self, change):
        before = getattr(self._region, "depth", 0)
        self._region.depth = before + change
        try:
            yield
        finally:
            self._region.depth = before

    @contextlib.contextmanager
    def region(self, tag="default", enable_cpu_backup=False, enable_disk_backup=False, cpu_backup_backend=None):
        keep = _keep_of(enable_cpu_backup, enable_disk_backup, cpu_backup_backend)
        name, device = TAGS[keep].format(tag), torch.cuda.current_device()
        with ashlar.tag(name, device), self._inside(+1):
            self._keeps[_Part(device, tag, name)] = keep
            yield

    @contextlib.contextmanager
    def cuda_graph(self, cuda_graph, pool=None, stream=None, capture_error_mode="global", tag="default",
                   enable_cpu_backup=False, cpu_backup_backend=None):
        """torch.cuda.graph, in a pool that sleeps by the tag, where its memory can: all of the pool."""
        keep, device = _keep_of(enable_cpu_backup, False, cpu_backup_backend), torch.cuda.current_device()
        with torch.cuda.graph(cuda_graph, pool=pool, stream=stream, capture_error_mode=capture_error_mode), self._inside(+1):
            yield
        part = _Part(device, tag, pool=tuple(cuda_graph.pool()))
        if self._keeps.get(part) != "host":  # a graph of the same pool needs what it holds
            self._keeps[part] = keep

    @contextlib.contextmanager
    def disable(self):
        """Within a region: what is allocated in here does not sleep, and its pool goes with it."""
        if getattr(self._region, "depth", 0) < 1:
            raise RuntimeError("ashlar: torch_memory_saver.disable: no region is open in this thread: allocate as it is")
        with ashlar.pool(), self._inside(-1):
            yield

    def _parts(self, tag):
        return [part for part in list(self._keeps) if tag is None or part.tag == tag]

    def pause(self, tag=None):
        parts = self._parts(tag)
        for keep in TAGS:
            _sleep([part for part in parts if self._keeps[part] == keep], keep,
                   self._folder or os.environ.get("TMS_DISK_BACKUP_DIR"))

    def resume(self, tag=None):
        _wake(self._parts(tag))

    def set_disk_backup_dir(self, path):
        os.makedirs(path, exist_ok=True)
        self._folder = path

    @property
    def memory_margin_bytes(self):
        raise NotImplementedError("ashlar: torch_memory_saver.memory_margin_bytes can be set alone")

    @memory_margin_bytes.setter
    def memory_margin_bytes(self, value):
        if value:
            _say("memory_margin_bytes is not kept: set per_process_memory_fraction, which fails a request as a full device")

    @property
    def retain_cpu_backup(self):
        return False

    @retain_cpu_backup.setter
    def retain_cpu_backup(self, value):
        if value:
            _say("retain_cpu_backup stays off: a backup goes when its memory wakes, and the next pause copies anew")

    def get_cpu_backup(self, x, zero_copy=False):
        """None of what is awake."""
        if not ashlar.is_asleep(x):
            return None
        raise NotImplementedError("ashlar: torch_memory_saver.get_cpu_backup: what sleeps is not read: resume it, then x.cpu()")


def _keep_of(enable_cpu_backup, enable_disk_backup, cpu_backup_backend):
    if enable_cpu_backup and enable_disk_backup:
        raise ValueError("ashlar: torch_memory_saver: a backup is in memory of the host or in a file: enable one")
    if cpu_backup_backend not in (None, "pinned", "mmap"):
        raise ValueError('ashlar: torch_memory_saver: cpu_backup_backend is "pinned" or "mmap", and not '
                         f"{cpu_backup_backend!r}")
    if cpu_backup_backend is not None and not enable_cpu_backup:
        raise ValueError("ashlar: torch_memory_saver: cpu_backup_backend requires enable_cpu_backup=True")
    if cpu_backup_backend == "mmap":
        _say("cpu_backup_backend=\"mmap\" is page-locked memory here, as \"pinned\" is")
    return "file" if enable_disk_backup else "host" if enable_cpu_backup else "nothing"


@contextlib.contextmanager
def configure_subprocess():
    """Nothing is preloaded: a process calls ashlar_gpu.torch.install by itself."""
    yield


torch_memory_saver = TorchMemorySaver()
