"""torch.compile: Inductor and Triton generate kernels on the host, and launch them."""

import torch
from layers import Model, step
from tell import tell

torch.manual_seed(0)
model = Model(depth=2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model)
for _ in range(3):
    step(compiled, optimizer, torch.randint(0, 8192, (4, 256)).cuda())
graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
tell("compile", graphs=graphs)
