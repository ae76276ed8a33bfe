"""Private pools of Ashlar's allocator beside PyTorch's graphs, on two devices. With `segments`: of PyTorch's own allocator,
over memory of ours."""

import gc
import sys

import torch
from tell import tell

import ashlar_gpu.torch as integration
from ashlar_gpu import _library as c
from ashlar_gpu import _torch_plugin as plugin

MIB = 1 << 20
installs = sys.argv[1:] != ["segments"]
if installs:
    integration.install("report_leaks:False")
torch.cuda.init()


def bytes_on(device, size):
    return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")


# A pool of a device that is not the current one.
assert torch.cuda.current_device() == 0
with integration.pool(device=1) as pool:
    inside = bytes_on(1, 30 * MIB)
    assert torch.cuda.current_device() == 0
assert torch.cuda.memory_reserved(1) == 30 * MIB and torch.cuda.memory_reserved(0) == 0
assert c.find_block(plugin.open_allocator(1), inside.data_ptr()).requested_bytes == 30 * MIB
del inside, pool
gc.collect()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved(1) == 0

checks = 3
if installs:
    # No handle for graphs has a pool's id, and a graph's blocks are none of a pool's.
    pools, handles = [], []
    for _ in range(3):
        pools.append(torch.cuda.MemPool())
        handles.append(torch.cuda.graph_pool_handle())
    ids = [tuple(pool.id) for pool in pools] + [tuple(handle) for handle in handles]
    assert len(set(ids)) == 6, ids
    of_torch = max(second for _, second in ids)
    assert of_torch <= 7, ids  # PyTorch's own counter: one for each
    side = torch.cuda.Stream()
    with torch.cuda.use_mem_pool(pools[0]), torch.cuda.stream(side):
        kept = bytes_on(0, 30 * MIB)
        freed = bytes_on(0, 30 * MIB).data_ptr()  # free for the pool's next request of this stream
    graph, static = torch.cuda.CUDAGraph(), bytes_on(0, 30 * MIB)
    with torch.cuda.graph(graph, pool=handles[0], stream=side):
        result = static + 1
    assert result.data_ptr() not in (freed, kept.data_ptr())
    owners = {segment["address"]: tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
    assert (owners[result.data_ptr()], owners[kept.data_ptr()]) == (tuple(handles[0]), tuple(pools[0].id)), owners
    assert [pool.use_count() for pool in pools] == [1, 1, 1]
    # A graph that was asked into a pool uses it.
    second = torch.cuda.CUDAGraph()
    with torch.cuda.graph(second, pool=pools[0].id, stream=side):
        other = static + 2
    assert other.data_ptr() == freed and pools[0].use_count() == 2
    checks += 5
tell("ashlar_pools", checks=checks)
