"""CuPy: its pools, kernels of its own and of the program, libraries of NVIDIA's, and a request that finds no memory.

    python try_cupy.py [FILE...]     libraries to open first: CuPy 13 looks for them on the linker's path alone
"""

import ctypes
import json
import sys

for library in sys.argv[1:]:
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)

import cupy
import cupyx.scipy.sparse

SOURCE = r"""
extern "C" {
__constant__ float weights[256];
__global__ void add(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += weights[i % 256]; }
}
"""


def kernels(x):
    double = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 2 * x", "double_it")
    cupy.RawKernel(SOURCE, "add")((4096,), (256,), (x, x.size))
    cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "all")(double(x))
    return float(x.sum()), cupy.sort(x).shape, cupy.argmax(x).shape


def variables():
    module = cupy.RawModule(code=SOURCE)
    weights = cupy.ndarray((256,), cupy.float32, module.get_global("weights"))
    weights[...] = cupy.ones(256, cupy.float32)
    return weights.nbytes


def libraries():
    a = cupy.eye(512, dtype=cupy.float32) * 4
    cupy.linalg.solve(a, a[:, :8])
    cupy.linalg.svd(a[:64, :64])
    sparse = cupyx.scipy.sparse.csr_matrix(
        (cupy.ones(4), cupy.arange(4), cupy.arange(5)), shape=(4, 4))
    cupy.random.rand(1000)
    return [(a @ a).shape, cupy.fft.fft(a).shape, (sparse @ cupy.ones(4)).shape]


def streams():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x = cupy.zeros(1 << 16)
        stream.begin_capture()
        x += 1
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        cupy.zeros(1 << 20)
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        cupy.zeros(1 << 20)
    return cupy.cuda.alloc_pinned_memory(1 << 16).size()


def too_much():
    try:
        cupy.zeros(1 << 45, cupy.uint8)
    except cupy.cuda.memory.OutOfMemoryError as error:
        return str(error)
    return ""


x = cupy.arange(1 << 20, dtype=cupy.float32)
kernels(x)
print(json.dumps({"program": "try_cupy", "version": cupy.__version__, "runtime": cupy.cuda.runtime.runtimeGetVersion(),
                  "used": cupy.get_default_memory_pool().used_bytes(), "variable": variables(), "shapes": libraries(),
                  "pinned": streams(), "failure": too_much()}))
