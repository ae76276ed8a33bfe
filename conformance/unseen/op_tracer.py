"""GNN training. The op tracer was for finding a NaN and is still on."""
import torch
import torch.nn as nn
from torch.utils._python_dispatch import TorchDispatchMode


class OpTracer(TorchDispatchMode):
    """records every op and its result, to look at them when a NaN shows up"""

    def __init__(self, keep=("addmm", "index_add", "relu", "mm")):
        super().__init__()
        self.keep = keep
        self.records = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if any(name.startswith(k) for k in self.keep):
            self.records.append((name, out))
        return out

    def check(self):
        for name, out in self.records[-100:]:
            if isinstance(out, torch.Tensor) and torch.isnan(out).any().item():
                raise RuntimeError(f"NaN after {name}")


class GraphConv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.self_lin, self.nb_lin = nn.Linear(a, b), nn.Linear(a, b, bias=False)

    def forward(self, x, src, dst):
        msg = self.nb_lin(x)[src]
        agg = torch.zeros(x.size(0), msg.size(1), device=x.device).index_add(0, dst, msg)
        return self.self_lin(x) + agg


class GNN(nn.Module):
    def __init__(self, f=128, h=256, out=40):
        super().__init__()
        self.c1, self.c2, self.c3 = GraphConv(f, h), GraphConv(h, h), GraphConv(h, out)

    def forward(self, x, src, dst):
        x = torch.relu(self.c1(x, src, dst))
        x = torch.relu(self.c2(x, src, dst))
        return self.c3(x, src, dst)


def train(steps=80, nodes=40_000, edges=160_000):
    gnn = GNN().cuda()
    opt = torch.optim.Adam(gnn.parameters(), lr=0.01)
    x = torch.randn(nodes, 128, device="cuda")
    y = torch.randint(0, 40, (nodes,), device="cuda")
    for step in range(steps):
        # sampled subgraph of this step
        src = torch.randint(0, nodes, (edges,)).cuda()
        dst = torch.randint(0, nodes, (edges,)).cuda()
        loss = nn.functional.cross_entropy(gnn(x, src, dst), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    tracer = OpTracer()
    with tracer:
        train()
    tracer.check()
