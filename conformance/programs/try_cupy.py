"""CuPy: an array made on the device, and its sum."""

import json

import cupy

x = cupy.arange(1 << 20, dtype=cupy.float32)
total = float((x * 2).sum())
print(json.dumps({"program": "try_cupy", "used": cupy.get_default_memory_pool().used_bytes(), "sum": total}))
