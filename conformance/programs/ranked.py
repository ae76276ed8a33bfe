"""A small training in one way of parallelism, for any number of ranks: ranked.py ddp|fsdp1|fsdp2|tp|pp|ep"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tell import tell
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WIDTH, LAYERS, BATCH, STEPS = 512, 8, 16, 3
# A thread of PyTorch looks ten times a second which collectives are done, and lets go of their buffers: DDP's first
# buckets would be there at its second step or not, as it comes.
PAUSE_SECONDS = 0.5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    """One expert a rank: tokens go to the ranks of their experts and come back."""

    def __init__(self, world):
        super().__init__()
        self.world = world
        self.router = nn.Linear(WIDTH, world)
        self.expert = Block()

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        order = torch.arange(len(tokens), device=x.device) % self.world  # each expert gets as many
        counts = torch.bincount(order.cpu(), minlength=self.world)
        theirs = torch.empty_like(counts).cuda()
        dist.all_to_all_single(theirs, counts.cuda())
        received = torch.empty(int(theirs.sum()), WIDTH, device=x.device)
        sent = tokens[order.argsort()].contiguous()
        splits = (theirs.tolist(), counts.tolist())
        here = torch.distributed.nn.functional.all_to_all_single(received, sent, *splits)
        back = torch.distributed.nn.functional.all_to_all_single(
            torch.empty_like(sent), self.expert(here), splits[1], splits[0])
        return x + back.reshape(x.shape) * self.router(x).softmax(-1).sum(-1, keepdim=True)


def stack(layers=LAYERS):
    return nn.Sequential(*[Block() for _ in range(layers)])


def ddp(rank, world):
    return nn.parallel.DistributedDataParallel(stack().cuda())


def fsdp1(rank, world):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    return FullyShardedDataParallel(stack().cuda(), auto_wrap_policy=ModuleWrapPolicy({Block}), sync_module_states=True)


def fsdp2(rank, world):
    from torch.distributed.fsdp import fully_shard

    model = stack().cuda()
    for block in model:
        fully_shard(block)
    return fully_shard(model)


def tp(rank, world):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {f'{i}.{name}': way() for i in range(LAYERS) for name, way in (('up', ColwiseParallel), ('down', RowwiseParallel))}
    return parallelize_module(stack().cuda(), init_device_mesh('cuda', (world,)), plan)


def ep(rank, world):
    return nn.Sequential(Experts(world), Experts(world)).cuda()


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(STEPS):
        model(torch.randn(BATCH, 64, WIDTH, device='cuda')).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        time.sleep(PAUSE_SECONDS)


def pipeline(rank, world):
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    each = LAYERS // world
    model = stack(each + (1 if rank == world - 1 else 0)).cuda()  # the last stage has one layer more
    stage = PipelineStage(model, rank, world, torch.device('cuda', torch.cuda.current_device()))
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(STEPS):
        x = torch.randn(BATCH, 64, WIDTH, device='cuda')
        if rank == 0:
            schedule.step(x)
        elif rank == world - 1:
            schedule.step(target=x)
        else:
            schedule.step()
        optimizer.step()
        optimizer.zero_grad()


def main():
    way = sys.argv[1]
    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
    dist.init_process_group(os.environ.get('BACKEND', 'nccl'))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    told = [None] * world
    dist.all_gather_object(told, {'rank': rank})
    setting = [{'steps': STEPS} if rank == 0 else None]
    dist.broadcast_object_list(setting, 0)
    assert setting[0] == {'steps': STEPS}, setting
    if way == 'pp':
        pipeline(rank, world)
    else:
        train({'ddp': ddp, 'fsdp1': fsdp1, 'fsdp2': fsdp2, 'tp': tp, 'ep': ep}[way](rank, world))
    dist.barrier()
    tell('ranked', rank=rank, heard=len(told))
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
