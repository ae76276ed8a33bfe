"""One training step of Llama 3 70B in bf16 on many ranks: llama70b_ranks.py fsdp | tp_pp [TOKENS]

fsdp     FSDP2 (fully_shard) over the whole world, each decoder layer recomputed
tp_pp    tensor parallel on 8 ranks, 4 stages of a pipeline, FSDP2 over the rest
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from tell import tell
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

WIDTH, LAYERS, HEADS, KEY_HEADS, INNER, WORDS = 8192, 80, 64, 8, 28672, 128256
HEAD = WIDTH // HEADS
TP, STAGES = 8, 4


class Attention(nn.Module):
    def __init__(self, width=WIDTH, key_heads=KEY_HEADS):
        super().__init__()
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, key_heads * HEAD, bias=False)
        self.v = nn.Linear(width, key_heads * HEAD, bias=False)
        self.o = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (part(x).view(batch, tokens, -1, HEAD).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, tokens, -1))


class Mlp(nn.Module):
    def __init__(self, width=WIDTH, inner=INNER):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.mlp = Attention(), Mlp()

    def body(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False)


class Part(nn.Module):
    """Layers of the model, with its embedding first and its head last where it has them."""

    def __init__(self, layers, is_first, is_last):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH) if is_first else None
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.RMSNorm(WIDTH) if is_last else None
        self.head = nn.Linear(WIDTH, WORDS, bias=False) if is_last else None

    def forward(self, x):
        x = x if self.embedding is None else self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return x if self.head is None else self.head(self.norm(x))


def loss_of(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def made(part, mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in part.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(part, mesh=mesh, mp_policy=policy)
    part.to_empty(device='cuda')
    return part


def fsdp(tokens):
    with torch.device('meta'):
        model = Part(LAYERS, True, True)
    model = made(model, init_device_mesh('cuda', (dist.get_world_size(),)))
    words = torch.zeros(1, tokens, dtype=torch.long, device='cuda')
    optimizer = torch.optim.AdamW(model.parameters())
    loss_of(model(words), words).backward()
    optimizer.step()


def tensor_parallel(part, mesh):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    split, join = ColwiseParallel, RowwiseParallel
    for layer in part.layers:
        parallelize_module(layer, mesh, {'attention.q': split(), 'attention.k': split(), 'attention.v': split(),
                                         'attention.o': join(), 'mlp.gate': split(), 'mlp.up': split(), 'mlp.down': join()})
    return part


def tp_pp(tokens):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    world = dist.get_world_size()
    mesh = init_device_mesh('cuda', (STAGES, world // TP // STAGES, TP), mesh_dim_names=('pp', 'dp', 'tp'))
    place = mesh['pp'].get_local_rank()
    with torch.device('meta'):
        part = Part(LAYERS // STAGES, place == 0, place == STAGES - 1)
    part = made(tensor_parallel(part, mesh['tp']), mesh['dp'])
    stage = PipelineStage(part, place, STAGES, torch.device('cuda', torch.cuda.current_device()), group=mesh['pp'].get_group())
    schedule = Schedule1F1B(stage, 2 * STAGES, loss_fn=loss_of)
    words = torch.zeros(2 * STAGES, tokens, dtype=torch.long, device='cuda')
    optimizer = torch.optim.AdamW(part.parameters())
    if place == 0:
        schedule.step(words)
    elif place == STAGES - 1:
        schedule.step(target=words)
    else:
        schedule.step()
    optimizer.step()


def main():
    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
    dist.init_process_group('nccl')
    {'fsdp': fsdp, 'tp_pp': tp_pp}[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 4096)
    tell('llama70b_ranks', rank=dist.get_rank(), world=dist.get_world_size())
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
