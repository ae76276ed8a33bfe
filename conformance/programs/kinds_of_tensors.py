"""Tensors that are not plain ones, each of 64 MiB and more and kept by a variable of its own, and then a request that fails."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

MIB = 1 << 20


class Raising(torch.Tensor):
    """A subclass of which nothing may be asked."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") in ("__repr__", "__eq__", "__bool__", "__len__", "__hash__"):
            raise RuntimeError("asked for " + function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})

    def __getattr__(self, name):
        raise RuntimeError("asked for " + name)


class Wrapper(torch.Tensor):
    """A subclass that holds another tensor, as torchao's do."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise RuntimeError("nothing is computed with it")


def ones(mib):
    return torch.ones(mib * MIB // 4, device="cuda")


def main():
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ.get("MASTER_PORT", "29511"), RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (1,))
    sharded = distribute_tensor(ones(64).view(4096, -1), mesh, [Shard(0)])
    raising = ones(68).as_subclass(Raising)
    wrapped = Wrapper(ones(72))
    indices = torch.stack([torch.arange(MIB, device="cuda")] * 2)
    sparse = torch.sparse_coo_tensor(indices, torch.ones(MIB, 19, device="cuda"), (MIB, MIB, 19))
    rows = torch.sparse_csr_tensor(torch.arange(MIB + 1, device="cuda"), torch.zeros(MIB, dtype=torch.long, device="cuda"),
                                   torch.ones(MIB, device="cuda"), (MIB, 16))
    nested = torch.nested.nested_tensor([ones(40), ones(44)], layout=torch.jagged)
    rounded = torch.quantize_per_tensor(ones(240), 0.1, 0, torch.quint8)
    with FakeTensorMode():
        imagined = torch.ones(1 << 40, device="cuda")
    batched = torch.func.vmap(lambda one: one * 2)(ones(88).view(8, -1))
    module = nn.Linear(4096, 5888, bias=False, device="cuda")
    compiled = torch.compile(module)
    parameter = nn.Parameter(ones(96).view(4096, -1))
    function = torch.func.grad(lambda weight: (weight * weight).sum())
    slopes = function(ones(100))
    kept = (sharded, raising, wrapped, sparse, rows, nested, rounded, imagined, batched, compiled, parameter, slopes)
    ones(64 << 10)
    return kept


main()
