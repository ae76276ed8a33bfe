"""The cache is emptied in each step of a training, and by the capture of a graph, whose first request nothing cached fits."""

import torch
from layers import Model, step
from tell import tell

torch.manual_seed(0)
model = Model(depth=2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for length in [256, 192, 256, 128, 320]:
    torch.cuda.empty_cache()
    step(model, optimizer, torch.randint(0, 8192, (4, length)).cuda())
optimizer.zero_grad(set_to_none=True)
tokens = torch.zeros(4, 256, dtype=torch.long, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    model(tokens)
    with torch.cuda.graph(graph):
        out = model(tokens)
graph.replay()
tell("emptied", shape=list(out.shape))
