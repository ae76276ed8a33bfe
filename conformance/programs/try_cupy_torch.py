"""CuPy, whose runtime is linked in, beside PyTorch in one process: one device's books, and a tensor that both have. PyTorch prints a
captured graph by cuda.bindings, which has a runtime of its own as well.

    python try_cupy_torch.py
"""

import json
import os
import tempfile

import cupy
import torch

MIB = 1 << 20

tensor = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
before = torch.cuda.mem_get_info()[0]
own = cupy.zeros(64 * MIB, dtype=cupy.uint8)
taken = before - torch.cuda.mem_get_info()[0]
shared = cupy.from_dlpack(tensor)
shared += 1

graph = torch.cuda.CUDAGraph(keep_graph=True)
graph.enable_debug_mode()
static = torch.ones(1 << 20, device="cuda")
with torch.cuda.graph(graph):
    static * 2
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "graph.dot")
    graph.debug_dump(path)
    has_nodes = "KERNEL" in open(path, encoding="utf-8").read().upper()

print(json.dumps({"program": "try_cupy_torch", "taken": taken, "same_address": shared.data.ptr == tensor.data_ptr(),
                  "same_books": list(torch.cuda.mem_get_info()) == list(cupy.cuda.runtime.memGetInfo()),
                  "graph_is_printed": has_nodes}))
