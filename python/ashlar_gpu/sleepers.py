"""Sleep by the names that callers of vLLM's cumem and of torch_memory_saver use, over ashlar_gpu.torch (docs/library/sleep.md).

    from ashlar_gpu.sleepers import CuMemAllocator, torch_memory_saver

    with CuMemAllocator.get_instance().use_memory_pool(tag="weights"): model = load()
    CuMemAllocator.get_instance().sleep(offload_tags="weights")       # what has another tag is lost
    CuMemAllocator.get_instance().wake_up()

    with torch_memory_saver.region(tag="weights", enable_cpu_backup=True): model = load()
    torch_memory_saver.pause("weights")
    torch_memory_saver.resume("weights")

Each knows what was allocated by its own contexts alone. Errors and threads: as ashlar_gpu.torch.
"""

import contextlib

from . import torch as ashlar

__all__ = ["CuMemAllocator", "TorchMemorySaver", "torch_memory_saver"]


class CuMemAllocator:
    """vllm.device_allocator.cumem.CuMemAllocator."""

    default_tag = "default"
    instance = None

    def __init__(self):
        self._tags = set()

    @classmethod
    def get_instance(cls):
        if cls.instance is None:
            cls.instance = cls()
        return cls.instance

    @contextlib.contextmanager
    def use_memory_pool(self, tag=None):
        name = self.default_tag if tag is None else tag
        with ashlar.tag(name):
            self._tags.add(name)
            yield

    def sleep(self, offload_tags=None):
        named = self.default_tag if offload_tags is None else offload_tags
        kept = {named} if isinstance(named, str) else set(named)
        for keep, tags in (("host", self._tags & kept), ("nothing", self._tags - kept)):
            if tags:
                ashlar.sleep(*sorted(tags), keep=keep)

    def wake_up(self, tags=None):
        wanted = self._tags if tags is None else self._tags & set(tags)
        if wanted:
            ashlar.wake(*sorted(wanted))

    def get_current_usage(self):
        """Bytes of the pools, asleep or not."""
        return sum(ashlar.tagged_bytes(tag) for tag in self._tags)


class TorchMemorySaver:
    """torch_memory_saver.TorchMemorySaver."""

    def __init__(self):
        self._keeps = {}  # tag of ours -> keep; theirs has two of ours, with a backup and without

    @contextlib.contextmanager
    def region(self, tag="default", enable_cpu_backup=False):
        name = f"{tag} with backup" if enable_cpu_backup else tag
        with ashlar.tag(name):
            self._keeps[name] = tag, "host" if enable_cpu_backup else "nothing"
            yield

    def _names(self, tag):
        return [(name, keep) for name, (theirs, keep) in sorted(self._keeps.items()) if tag is None or theirs == tag]

    def pause(self, tag=None):
        for name, keep in self._names(tag):
            ashlar.sleep(name, keep=keep)

    def resume(self, tag=None):
        names = [name for name, _ in self._names(tag)]
        if names:
            ashlar.wake(*names)


torch_memory_saver = TorchMemorySaver()
