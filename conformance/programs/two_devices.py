"""One process on two devices: memory of either is asked for and freed while the other is current."""

import torch
from tell import tell

MIB = 1 << 20
kept = {0: [], 1: []}
streams = {device: torch.cuda.Stream(device) for device in kept}
for turn in range(12):
    for device in kept:
        with torch.cuda.device(1 - device):
            kept[device].append(torch.empty((turn + 1) * MIB + device, dtype=torch.uint8, device=f"cuda:{device}"))
        with torch.cuda.stream(streams[device]):
            side = torch.empty(3 * turn * MIB + 7, dtype=torch.uint8, device=f"cuda:{device}")
        kept[device][-1].record_stream(streams[device])
        side.record_stream(torch.cuda.default_stream(device))
    moved = kept[0][-1].to("cuda:1")
    if turn % 3 == 2:
        kept[0].pop(0)
        kept[1].pop(1)
    if turn == 6:
        torch.cuda.empty_cache()
    del moved, side
with torch.cuda.device(1):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        kept[1].append(torch.empty(25 * MIB, dtype=torch.uint8, device="cuda"))
reserved = [torch.cuda.memory_reserved(device) for device in kept]
allocated = [torch.cuda.memory_allocated(device) for device in kept]
tell("two_devices", reserved=reserved, allocated=allocated)
