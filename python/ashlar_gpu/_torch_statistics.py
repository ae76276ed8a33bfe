"""torch.cuda.memory_stats and what stands on it, of Ashlar's allocators, in PyTorch's names and shapes.

    of_device(0)["allocated_bytes"]["all"]["peak"]      what torch.cuda.memory_stats_as_nested_dict() gives

A device that PyTorch has not used has zeros, and is not opened by being asked. Threads: any.
"""

import functools

from . import _library as c

_accumulated = {}  # device -> flat statistics at the last reset


def nested(flat):
    """{"active.all.peak": 1} -> {"active": {"all": {"peak": 1}}}"""
    out = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        inner = out
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return out


@functools.cache
def _zeros():
    handle = c.open_allocator(conf="", memory=c.MEMORY_SIMULATED)
    try:
        return dict.fromkeys(c.torch_statistics(handle), 0)
    finally:
        c.close(handle)


def _is_accumulated(name):
    return name.startswith("num_") or name.endswith((".allocated", ".freed"))


def flat(device, handle):
    """By names such as "active.all.peak". `handle`: the device's allocator, or None."""
    if handle is None:
        return dict(_zeros())
    now, since = c.torch_statistics(handle), _accumulated.get(device, {})
    return {name: value - since.get(name, 0) if _is_accumulated(name) else value for name, value in now.items()}


def of_device(device, handle):
    return nested(flat(device, handle))


def reset_peaks(handle):
    if handle is not None:
        c.check(c.library().ashlar_reset_peaks(handle))


def reset_accumulated(device, handle):
    if handle is not None:
        _accumulated[device] = c.torch_statistics(handle)
