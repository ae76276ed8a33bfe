"""numba under the memory manager that NUMBA_CUDA_MEMORY_MANAGER names: turns of arrays, a kernel, views, copies back.

With BUILT_IN=1 it is the numba.cuda that numba itself brings, also where numba-cuda is installed.
"""

import gc
import json
import os
import sys
import time

if os.environ.get("BUILT_IN") == "1":
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "NumbaCudaFinder"]

import numba  # noqa: E402
import numpy  # noqa: E402
from numba import cuda  # noqa: E402

TURNS, PAIRS = 40, 2000


def turn(kernel, number):
    given = numpy.arange(200_000 + 10_000 * (number % 7), dtype=numpy.float32)
    x = cuda.to_device(given)
    scratch = cuda.device_array(x.shape, dtype=numpy.float64)
    if kernel is not None:
        kernel[1024, 256](x)
    part = x[100:200]
    del x
    back = part.copy_to_host()  # the view keeps the array
    return scratch.nbytes, len(back), bool((back == given[100:200]).all())


def make_kernel():
    @cuda.jit
    def nothing_of_it(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    return None if os.environ.get("BUILT_IN") == "1" else nothing_of_it  # it compiles for CUDA 12 at most


def nanoseconds_of_a_pair():
    """Of the memory manager alone: an array of numba's costs ten times as much besides."""
    context = cuda.current_context()
    gc.disable()
    begun = time.process_time_ns()
    for _ in range(PAIRS):
        context.memalloc(1 << 20)
    spent = time.process_time_ns() - begun
    gc.enable()
    return spent // PAIRS


kernel = make_kernel()
seen = [turn(kernel, number) for number in range(TURNS)]
cuda.synchronize()
with cuda.defer_cleanup():
    cuda.device_array(1000)
streams = [cuda.stream() for _ in range(2)]
pinned, mapped = cuda.pinned_array(1000), cuda.mapped_array(1000)
free, total = cuda.current_context().get_memory_info()
try:
    cuda.device_array(1 << 50, dtype=numpy.uint8)
    failure = "none"
except cuda.cudadrv.driver.CudaAPIError as error:
    failure = error.code
told = {"program": "integration_numba", "version": f"numba {numba.__version__}, {cuda.__file__.split('/site-packages/')[1]}",
        "manager": type(cuda.current_context().memory_manager).__module__, "seen": seen, "failure": int(failure),
        "total": total, "ns_of_a_pair": nanoseconds_of_a_pair()}
if "ashlar_gpu.numba" in sys.modules:
    from ashlar_gpu import allocator
    gc.collect()
    allocator.empty_cache()
    told["statistics"] = allocator.statistics()
print(json.dumps(told))
