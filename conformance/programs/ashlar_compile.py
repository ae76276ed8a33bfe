"""torch.compile in the mode that captures CUDA graphs, with Ashlar as PyTorch's allocator."""

import ashlar_gpu.torch as integration

integration.install()

import torch
from tell import tell

layer = torch.nn.Linear(64, 64).cuda()
compiled = torch.compile(layer, mode="reduce-overhead")
rows = torch.zeros(8, 64, device="cuda")
with torch.no_grad():
    shapes = [compiled(rows).shape for _ in range(4)]
tell("ashlar_compile", replays=len(shapes), trees=torch._inductor.config.triton.cudagraph_trees)
