"""FSDP2 (fully_shard) by torchrun: parameters are DTensors, gathered layer by layer."""

import os

import torch
import torch.distributed as dist
from layers import Model, step
from tell import tell
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
mesh = init_device_mesh("cuda", (dist.get_world_size(),))
model = Model(width=1024, depth=8).cuda()
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    step(model, optimizer, torch.randint(0, 8192, (4, 256)).cuda())
tell("fsdp2", rank=dist.get_rank(), world=dist.get_world_size())
dist.destroy_process_group()
