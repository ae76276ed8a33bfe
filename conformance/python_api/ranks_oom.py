"""Two ranks under torchrun; rank 1 runs out of memory."""
import ashlar_gpu

ashlar_gpu.on_oom()

import os  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("gloo")
kept = [torch.empty(256 << 20, dtype=torch.uint8, device="cuda") for _ in range(2 + 20 * rank)]
dist.barrier()
