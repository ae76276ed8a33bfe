"""RMM: a pool over the device, the driver's pool, managed memory, and a request that finds no memory."""

import json

import rmm
from rmm import mr

pool = mr.PoolMemoryResource(mr.CudaMemoryResource(), initial_pool_size=1 << 26)
sizes = []
for resource in (pool, mr.CudaAsyncMemoryResource(), mr.ManagedMemoryResource(), mr.CudaMemoryResource()):
    mr.set_current_device_resource(resource)
    sizes.append(rmm.DeviceBuffer(size=1 << 20).size)
failure = ""
try:
    rmm.DeviceBuffer(size=1 << 45)
except MemoryError as error:
    failure = str(error)
print(json.dumps({"program": "try_rmm", "version": rmm.__version__, "sizes": sizes, "failure": failure}))
