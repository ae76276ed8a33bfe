"""torch.compile in the mode that captures CUDA graphs, whose trees take checkpoints of their pool and go back to them."""

import torch
from tell import tell
from torch._inductor import cudagraph_trees

restored = []
original = torch._C._cuda_setCheckpointPoolState


def counted(*words):
    restored.append(len(words))
    return original(*words)


torch._C._cuda_setCheckpointPoolState = counted
layers = [torch.nn.Linear(64, 64).cuda() for _ in range(2)]


@torch.compile(mode="reduce-overhead")
def first(rows):
    return torch.relu(layers[0](rows)) + 1


@torch.compile(mode="reduce-overhead")
def second(rows):
    return layers[1](rows) * 2


rows = torch.zeros(8, 64, device="cuda")
shapes = []
with torch.no_grad():
    for turn in range(6):
        torch.compiler.cudagraph_mark_step_begin()
        middle = first(rows)
        if turn % 2 == 0:  # another path of the tree
            middle = first(middle.clone())
        shapes.append(tuple(second(middle.clone()).shape))
manager = cudagraph_trees.get_manager(0, create_if_none_exists=False)
tell("torch_trees", replays=len(shapes), restored=len(restored), has_trees=manager is not None,
     allocated=torch.cuda.memory_allocated(), reserved=torch.cuda.memory_reserved())
