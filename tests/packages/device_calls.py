"""A program that calls CUDA's driver, by ctypes: it allocates 100 MiB three times and frees once."""

import ctypes

MIB = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        raise SystemExit(f"{name} failed with {status}")


context = ctypes.c_void_p()
device = ctypes.c_int()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
blocks = []
for _ in range(3):
    block = ctypes.c_void_p()
    call("cuMemAlloc_v2", ctypes.byref(block), ctypes.c_size_t(100 * MIB))
    blocks.append(block)
call("cuMemFree_v2", blocks[0])
free, total = ctypes.c_size_t(), ctypes.c_size_t()
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
print(f"{total.value // MIB} MiB in all")
