"""CUDA graph trees: a step for each of several sizes, recorded in branches, so that the pool is put back again and again."""

import torch
from tell import tell

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model, mode="reduce-overhead", dynamic=False)
for batch in [256, 512, 256, 1024, 512, 256, 384] * 2:
    torch.compiler.cudagraph_mark_step_begin()
    loss = compiled(torch.zeros(batch, 512, device="cuda")).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
tell("graph_trees", graphs=torch._dynamo.utils.counters["stats"]["unique_graphs"])
