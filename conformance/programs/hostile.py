"""Objects that raise, block or allocate in whatever is asked of them, around requests that fail and are tried again.

Whoever looks at the program's objects while a request fails must ask none of them: the program tells how often one was
asked, and its history is to be the same whether somebody looks or not.
"""
import gc
import weakref

import torch
from tell import tell
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

ASKED = []
CUDA = torch.device('cuda')


def asked(name):
    def ask(self, *_, **__):
        ASKED.append(name)
        torch.empty(1 << 20, device=CUDA)  # would be in the history
        raise RuntimeError(f'{name} was asked for')

    return ask


NAMES = ('__getattr__ __getattribute__ __eq__ __ne__ __hash__ __repr__ __str__ __bool__ __len__ __iter__ __next__ '
         '__getitem__ __contains__ __call__ __index__ __sizeof__ __dir__ __reduce__ __reduce_ex__ __format__ __enter__').split()
Hostile = type('Hostile', (), {name: asked(name) for name in NAMES})
HostileList = type('HostileList', (list,), {name: asked(name) for name in NAMES})
HostileDict = type('HostileDict', (dict,), {name: asked(name) for name in NAMES})
HostileMeta = type('HostileMeta', (type,), {'__hash__': asked('meta hash'), '__eq__': asked('meta eq'),
                                            '__instancecheck__': asked('meta instance'), '__getattr__': asked('meta attr')})


class Lazy(object):
    value = property(asked('property'))
    __class__ = property(asked('__class__'))


class Guarded(torch.Tensor):
    """A subclass that nobody may ask anything while a request fails."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if IS_FAILING:
            ASKED.append(f'__torch_function__ {function}')
        return super().__torch_function__(function, types, args, kwargs or {})


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if IS_FAILING:
            ASKED.append(f'__torch_dispatch__ {function}')
        return function(*args, **(kwargs or {}))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given):
        ctx.kept = given * 2  # a cycle with the graph
        ctx.hostile = Hostile()
        return ctx.kept

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


IS_FAILING = False


def failing(*_):
    """PyTorch calls observers in the order in which they were attached: this one is the first."""
    global IS_FAILING
    IS_FAILING = True


def unpack(packed):
    if IS_FAILING:
        ASKED.append('unpack')
    return packed[0]


def step(layer, batch, held):
    given = torch.randn(batch, 1024, device=CUDA).as_subclass(Guarded)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (tensor, Hostile()), unpack):
        out = layer(given)
    out = checkpoint(layer, out, use_reentrant=False)
    out = Doubled.apply(out)
    held.append(weakref.ref(out))
    return out.sum()  # no backward pass: when its thread lets go of what failed is no two runs' alike


def main():
    global IS_FAILING
    torch.manual_seed(0)
    layer = torch.nn.Linear(1024, 1024).to(CUDA)
    torch._C._cuda_attach_out_of_memory_observer(failing)
    everywhere = [Hostile(), HostileList(), HostileDict(), Lazy(), HostileMeta('Of', (), {})()]
    object.__setattr__(everywhere[0], 'held', torch.ones(1 << 18, device=CUDA))
    list.append(everywhere[1], torch.ones(1 << 18, device=CUDA))
    dict.__setitem__(everywhere[2], 'held', torch.ones(1 << 18, device=CUDA))
    batch, failures, held = 1 << 17, 0, []
    gc.disable()  # cycles are collected where the program says so
    with Watching():
        for turn in range(40):
            if turn % 8 == 7:
                gc.collect()
            try:
                step(layer, batch, held)
            except torch.cuda.OutOfMemoryError:
                IS_FAILING = False
                failures += 1
                batch = batch * 3 // 4
    gc.collect()
    alive = sum(one() is not None for one in held)
    tell('hostile', failures=failures, batch=batch, asked=ASKED[:4], alive=alive)


if __name__ == '__main__':
    main()
