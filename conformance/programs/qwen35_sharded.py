"""One step of Qwen3.5-0.8B over many ranks: qwen35_sharded.py fsdp|fsdp2 LENGTH; fsdp2 trains LoRA."""

import functools
import os
import sys

import torch
import torch.distributed as dist
from qwen35 import batch_of, model_of, step, with_lora
from tell import tell
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(0)
model = model_of("0.8B")
if sys.argv[1] == "fsdp2":
    model = with_lora(model)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for layer in model.base_model.model.model.layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh, reshard_after_forward=True)
else:
    layer = type(model.model.layers[0])
    model = FullyShardedDataParallel(
        model,
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={layer}),
        sharding_strategy=ShardingStrategy.FULL_SHARD,
        device_id=torch.cuda.current_device(),
        backward_prefetch=None,
        forward_prefetch=False,
        use_orig_params=True,
    )
model.train()
peak = step(model, [batch_of(int(sys.argv[2]), 0)])
tell("qwen35_sharded", rank=dist.get_rank(), peak=peak)
dist.destroy_process_group()
