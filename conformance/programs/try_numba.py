"""numba-cuda: an array to the device, a kernel over it, and back."""

import json

import numpy
from numba import cuda


@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


x = cuda.to_device(numpy.arange(1 << 20, dtype=numpy.float32))
double[4096, 256](x)
cuda.synchronize()
free, total = cuda.current_context().get_memory_info()
print(json.dumps({"program": "try_numba", "back": list(x.copy_to_host().shape), "used": total - free}))
