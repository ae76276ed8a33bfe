"""torch.cuda.MemPool: a pool of the user's own beside the default one."""

import torch
from tell import tell

pool = torch.cuda.MemPool()
kept = []
for i in range(8):
    scratch = torch.empty((i + 1) << 20, device="cuda")
    with torch.cuda.use_mem_pool(pool):
        kept.append(torch.empty((1 << 18) + (i << 16), device="cuda"))
    if len(kept) > 3:
        kept.pop(i % 3)
    del scratch
tell("mempool", segments_of_pool=len(pool.snapshot()))
