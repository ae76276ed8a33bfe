"""DistributedDataParallel by torchrun: PyTorch compares the ranks' parameter shapes through NCCL first."""

import os

import torch
import torch.distributed as dist
from layers import Model, step
from tell import tell
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
model = DistributedDataParallel(Model().cuda())
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    step(model, optimizer, torch.randint(0, 8192, (4, 256)).cuda())
total = torch.full((), float(dist.get_rank() + 1), device="cuda")
dist.all_reduce(total)
tell("ddp", rank=dist.get_rank(), sum_of_ranks=total.item())
dist.destroy_process_group()
