"""Node classification on a citation graph with neighbour sampling; a memory bank smooths the node states."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F

device = 'cuda'


class Graph:
    """Edges in compressed rows on the host, features of all nodes, labels."""

    def __init__(self, nodes, degree, features, classes, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.nodes, self.classes = nodes, classes
        self.indices = torch.randint(nodes, (nodes, degree), generator=gen)
        self.features = torch.zeros(nodes, features)
        self.labels = torch.randint(classes, (nodes,), generator=gen)
        self.split = torch.rand(nodes, generator=gen)

    def to(self, where):
        self.features = self.features.to(where)
        self.labels = self.labels.to(where)
        return self

    def neighbours(self, seeds, fanout, gen):
        pick = torch.randint(self.indices.size(1), (seeds.numel(), fanout), generator=gen)
        return torch.gather(self.indices[seeds], 1, pick)


class Sage(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.own, self.near = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)

    def forward(self, x, near):
        return F.relu(self.own(x) + self.near(near.mean(1)))


class Net(nn.Module):
    def __init__(self, features, classes, width=512):
        super().__init__()
        self.one, self.two = Sage(features, width), Sage(width, width)
        self.out = nn.Linear(width + 256, classes)

    def forward(self, x0, x1, x2, memory):
        h1 = self.one(x1.flatten(0, 1), x2.flatten(0, 1)).unflatten(0, x1.shape[:2])
        h0 = self.two(self.one(x0, x1), h1)
        return self.out(torch.cat([h0, memory], 1)), h0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--batch', type=int, default=1024)
    ap.add_argument('--steps', type=int, default=24)
    args = ap.parse_args()
    gen = torch.Generator().manual_seed(1)
    graph = Graph(1_000_000, 8, 512, 40)
    graph.to(device)
    bank = torch.zeros(graph.nodes, 256, dtype=torch.bfloat16, device=device)
    net = Net(512, graph.classes).to(device)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    nodes = torch.where(graph.split < 0.7)[0]
    for step in range(args.steps):
        seeds = nodes[torch.randint(nodes.numel(), (args.batch,), generator=gen)]
        near = graph.neighbours(seeds, 8, gen)
        far = graph.neighbours(near.flatten(), 8, gen).view(*near.shape, 8)
        x0, x1, x2 = (graph.features[i.to(graph.features.device)].to(device) for i in (seeds, near, far))
        y = graph.labels[seeds.to(graph.labels.device)].to(device)
        seeds = seeds.to(device)
        out, state = net(x0, x1, x2, bank[seeds].float())
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank[seeds] = state[:, :256].detach().to(bank.dtype)
        if step % 10 == 0:
            print(step, loss.item())


if __name__ == '__main__':
    main()
