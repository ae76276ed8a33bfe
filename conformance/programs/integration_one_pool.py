"""numba, cuda.core, CuPy's classes of memory, PyTorch where its integration is here, and ctypes: one pool, and accounting that agree.

Each entry of `held` is what was seen and what it has to be.
"""

import gc
import importlib.util
import json
import os

os.environ["NUMBA_CUDA_MEMORY_MANAGER"] = "ashlar_gpu.numba"

import numpy  # noqa: E402

from ashlar_gpu import allocator  # noqa: E402

MIB = 1 << 20
held, integrations = {}, []
HAS_TORCH = importlib.util.find_spec("ashlar_gpu.torch") is not None
if HAS_TORCH:
    import torch
    import ashlar_gpu.torch
    ashlar_gpu.torch.install()

from cuda.core import Device  # noqa: E402
from cupy.cuda import memory  # noqa: E402
from numba import cuda  # noqa: E402

import ashlar_gpu.cupy  # noqa: E402
import ashlar_gpu.numba  # noqa: E402
from ashlar_gpu.cuda_core import MemoryResource  # noqa: E402

device = Device()
device.set_current()
resource = MemoryResource(device)
default, side = device.default_stream, device.create_stream()
functions = ashlar_gpu.cupy.Functions(None)
makers = {
    "numba": lambda size: cuda.device_array(size, dtype=numpy.uint8),
    "cuda.core": lambda size: resource.allocate(size, stream=default),
    "CuPy": lambda size: memory.CFunctionAllocatorMemory(size, *functions.arguments, 0),
    "ctypes": lambda size: Ctypes(size),
}
if HAS_TORCH:
    makers["PyTorch"] = lambda size: torch.empty(size, dtype=torch.uint8, device="cuda")


class Ctypes:
    def __init__(self, size, stream=0):
        self.ptr = allocator.allocate(size, stream)

    def __del__(self):
        allocator.free(self.ptr)


def address_of(thing):
    if hasattr(thing, "__cuda_array_interface__"):
        return thing.__cuda_array_interface__["data"][0]
    return int(thing.handle) if hasattr(thing, "memory_resource") else thing.ptr


def allocated():
    return allocator.statistics()["allocated_bytes"]


# 1. What each holds is in the accounting, and nothing else.
start, things = allocated(), []
for number, (integration, make) in enumerate(makers.items()):
    things.append(make((2 + number) * MIB))
    integrations.append(integration)
    held[f"{integration}: the sum of all"] = (allocated() - start, sum((2 + n) * MIB for n in range(number + 1)))
at_once, calls_at_once = allocated() - start, allocator.statistics()["device_allocations"]
held["addresses are different"] = (len({address_of(thing) for thing in things}), len(things))
things.clear()
gc.collect()
held["all is freed"] = (allocated(), start)

# 2. What one frees serves each of the others, on the same stream, without a call of the device.
allocator.empty_cache()
first = makers["ctypes"](6 * MIB)
address, calls = address_of(first), allocator.statistics()["device_allocations"]
del first
for integration, make in makers.items():
    block = make(6 * MIB)
    held[f"{integration} takes what the one before freed"] = (address_of(block), address)
    del block
    gc.collect()
held["device calls of it"] = (allocator.statistics()["device_allocations"], calls)

# 3. Another stream does not take it, whatever the integration; what it has itself freed it does.
other = resource.allocate(6 * MIB, stream=side)
other_address = address_of(other)
held["another stream gets other memory"] = (other_address != address, True)
other.close(side)
with ashlar_gpu.numba.stream(side):
    array = cuda.device_array(6 * MIB, dtype=numpy.uint8)
held["numba takes what cuda.core freed on that stream"] = (address_of(array), other_address)
ashlar_gpu.numba.record_stream(array, default)
device_work = cuda.device_array(1 << 10, dtype=numpy.uint8)
device_work.copy_to_device(numpy.zeros(1 << 10, dtype=numpy.uint8))  # what the default stream has to do
del array, device_work
gc.collect()
next_one = resource.allocate(6 * MIB, stream=side)
waits = address_of(next_one) != other_address  # for the default stream, where its work takes time
next_one.close(side)
cuda.synchronize()
allocator.empty_cache()
held["all is freed at the end"] = (allocated(), start)
books = allocator.statistics()
held["as many frees as requests"] = (books["allocations"] - books["frees"], 0)
print(json.dumps({"program": "integration_one_pool", "integrations": integrations, "held": held, "requests": books["allocations"],
                  "device_calls": books["device_allocations"] + books["device_frees"],
                  "at_once": at_once, "waits": waits}))
