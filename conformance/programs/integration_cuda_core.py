"""cuda.core on its own memory resource, or on Ashlar's where INTEGRATION=ashlar: turns of buffers on two streams, copies, fills."""

import gc
import importlib.metadata
import json
import os
import time

try:
    from cuda.core import Device
except ImportError:  # releases before 0.5
    from cuda.core.experimental import Device

TURNS, PAIRS, MIB = 40, 2000, 1 << 20
ASHLAR = os.environ.get("INTEGRATION") == "ashlar"

device = Device()
device.set_current()
streams = [device.create_stream() for _ in range(2)]
if ASHLAR:
    from ashlar_gpu import allocator
    from ashlar_gpu.cuda_core import MemoryResource
    device.memory_resource = MemoryResource(device)


def turn(number):
    stream, other = streams[number % 2], streams[1 - number % 2]
    a = device.allocate((1 + number % 5) * MIB, stream=stream)
    b = device.allocate(a.size, stream=stream)
    a.copy_to(b, stream=stream)
    stream.sync()
    size = b.size
    a.close(stream)
    b.close(other if number % 3 == 0 else stream)
    return size


def nanoseconds_of_a_pair():
    gc.disable()
    begun = time.process_time_ns()
    for _ in range(PAIRS):
        device.allocate(MIB, stream=streams[0]).close(streams[0])
    spent = time.process_time_ns() - begun
    gc.enable()
    return spent // PAIRS


seen = [turn(number) for number in range(TURNS)]
device.allocate(MIB, stream=streams[0])  # nobody closes it
gc.collect()
try:
    device.allocate(1 << 50, stream=streams[0])
    failure = "none"
except Exception as error:
    failure = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
told = {"program": "integration_cuda_core", "version": f"cuda.core {importlib.metadata.version('cuda-core')}", "seen": seen,
        "failure": failure, "ns_of_a_pair": nanoseconds_of_a_pair()}
if ASHLAR:
    for stream in streams:
        stream.sync()
    allocator.empty_cache()
    told["statistics"] = allocator.statistics()
print(json.dumps(told))
