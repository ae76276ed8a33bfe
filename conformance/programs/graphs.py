"""CUDA graphs: two captures that share a pool, one with its own, replays, a reset."""

import torch
from layers import Model
from tell import tell

torch.manual_seed(0)
model = Model(depth=2).cuda().eval()
tokens = torch.zeros(4, 256, dtype=torch.long, device="cuda")
pool = torch.cuda.graph_pool_handle()


def capture(**settings):
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, **settings):
        out = model(tokens)
    return graph, out


with torch.no_grad():
    model(tokens)  # libraries take their workspaces before a capture
shared = [capture(pool=pool) for _ in range(2)]
own = capture()
for graph, _ in shared + [own]:
    for _ in range(3):
        tokens.copy_(torch.randint(0, 8192, (4, 256)))
        graph.replay()
torch.cuda.synchronize()
own[0].reset()
segments = torch.cuda.memory_snapshot()
tell("graphs", private_pools=len({tuple(s["segment_pool_id"]) for s in segments} - {(0, 0)}))
