"""cuda.bindings: the runtime that is linked into it, and the driver, which have one accounting."""

import json

from cuda.bindings import driver, runtime


def made(answer):
    status, *values = answer
    assert int(status) == 0, status
    return values[0] if len(values) == 1 else values


pointer = made(runtime.cudaMalloc(64 << 20))
stream, event = made(runtime.cudaStreamCreate()), made(runtime.cudaEventCreate())
made(runtime.cudaMemsetAsync(pointer, 1, 64 << 20, stream))
made(runtime.cudaEventRecord(event, stream))
made(runtime.cudaStreamSynchronize(stream))
free, total = made(runtime.cudaMemGetInfo())
other_free, other_total = made(driver.cuMemGetInfo())
name = made(runtime.cudaGetDeviceProperties(0)).name
made(runtime.cudaFree(pointer))
print(json.dumps({"program": "try_cuda_bindings", "runtime": made(runtime.cudaRuntimeGetVersion()),
                  "same_books": [free, total] == [other_free, other_total], "device": name.decode(),
                  "returned": made(runtime.cudaMemGetInfo())[0] - free}))
