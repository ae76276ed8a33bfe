"""Training steps of a mixture of experts on many ranks, its experts spread over them: moe_ranks.py 70b | small [TOKENS]

Experts lie on the ranks of a group, an equal part on each. Each rank's tokens go to the ranks of their two experts and come
back (all_to_all, with as many for each as the router says). FSDP2 shards the experts over the ranks that have the same ones,
and all else over the whole world. Each layer is recomputed.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from llama70b_ranks import HEAD, Attention, Mlp, loss_of
from tell import tell
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

TOP = 2
# width, layers, inner width of an expert, experts, words, tokens, steps. The large one has 69.9 billion parameters.
SIZES = {'70b': (4096, 48, 7168, 16, 32000, 4096, 1), 'small': (2 * HEAD, 2, 512, 16, 1000, 512, 3)}


class Router(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.top_k, self.num_experts = TOP, experts
        self.gate = nn.Linear(width, experts, bias=False)

    def forward(self, tokens):
        return self.gate(tokens).softmax(-1).topk(self.top_k, dim=-1)


class Experts(nn.Module):
    """Those of this rank."""

    def __init__(self, width, inner, count):
        super().__init__()
        self.each = nn.ModuleList(Mlp(width, inner) for _ in range(count))

    def forward(self, tokens, counts):
        return torch.cat([one(part) for one, part in zip(self.each, tokens.split(counts))])


class Mixture(nn.Module):
    def __init__(self, width, inner, experts, group):
        super().__init__()
        self.group, self.ranks, self.count = group, group.size(), experts // group.size()
        self.router = Router(width, experts)
        self.experts = Experts(width, inner, self.count)

    def forward(self, x):
        tokens = x.flatten(0, -2)
        weights, chosen = self.router(tokens)
        by_expert = chosen.flatten().argsort(stable=True)
        sent = chosen.flatten().bincount(minlength=self.router.num_experts)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        to, of = (counts.view(self.ranks, self.count).sum(1).tolist() for counts in (sent, received))
        here = collectives.all_to_all_single_autograd(tokens[by_expert // TOP], of, to, self.group)
        # They come by rank, and by expert within.
        expert = torch.arange(self.count, device=x.device).repeat(self.ranks).repeat_interleave(received)
        order = expert.argsort(stable=True)
        made = self.experts(here[order], received.view(self.ranks, self.count).sum(0).tolist())
        made = torch.empty_like(made).index_copy(0, order, made)
        back = collectives.all_to_all_single_autograd(made, to, of, self.group)
        scaled = back * weights.flatten()[by_expert].unsqueeze(-1).to(back.dtype)
        return torch.zeros_like(tokens).index_add(0, by_expert // TOP, scaled).view_as(x)


class Layer(nn.Module):
    def __init__(self, width, inner, experts, group):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Attention(width, max(1, width // HEAD // 4))
        self.mixture = Mixture(width, inner, experts, group)

    def body(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mixture(self.norm2(x))

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False)


class Model(nn.Module):
    def __init__(self, width, layers, inner, experts, words, group):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, inner, experts, group) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def made(sizes):
    world = dist.get_world_size()
    group = min(8, max(2, world // 2))  # ranks that the experts are spread over
    whole = init_device_mesh('cuda', (world,))
    mesh = init_device_mesh('cuda', (world // group, group), mesh_dim_names=('dp', 'ep'))
    with torch.device('meta'):
        model = Model(*sizes, mesh['ep'].get_group())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer.mixture.experts, mesh=mesh['dp'], mp_policy=policy)
        fully_shard(layer, mesh=whole, mp_policy=policy)
    fully_shard(model, mesh=whole, mp_policy=policy)
    return model.to_empty(device='cuda')


def main():
    *sizes, tokens, steps = SIZES[sys.argv[1]]
    tokens = int(sys.argv[2]) if len(sys.argv) > 2 else tokens
    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
    dist.init_process_group('nccl')
    model = made(sizes)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    words = torch.zeros(1, tokens, dtype=torch.long, device='cuda')
    for _ in range(steps):
        loss_of(model(words), words).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
    tell('moe_ranks', rank=dist.get_rank(), world=dist.get_world_size())
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
