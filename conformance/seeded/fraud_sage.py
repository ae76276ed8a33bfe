"""Fraud detection on a transaction graph: neighbour sampling on the host, GraphSAGE on the device."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Graph:
    def __init__(self, nodes, degree, features, seed=0):
        rng = np.random.default_rng(seed)
        self.neighbours = torch.from_numpy(rng.integers(0, nodes, (nodes, degree)))
        self.x = torch.from_numpy(rng.standard_normal((nodes, features), dtype=np.float32))
        self.y = torch.from_numpy((rng.random(nodes) < 0.02).astype(np.float32))

    def sample(self, seeds, fanouts, g):
        layers = [seeds]
        for fanout in fanouts:
            pick = torch.randint(0, self.neighbours.shape[1], (len(layers[-1]), fanout), generator=g)
            layers.append(self.neighbours[layers[-1]].gather(1, pick).flatten())
        return [self.x[l] for l in layers]


class Sage(nn.Module):
    def __init__(self, features, hidden, fanouts):
        super().__init__()
        self.fanouts = fanouts
        sizes = [features] + [hidden] * len(fanouts)
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.near = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(hidden, 1)

    def forward(self, xs):
        for own, near in zip(self.own, self.near):
            made = []
            for i in range(len(xs) - 1):
                mean = xs[i + 1].view(len(xs[i]), self.fanouts[i], -1).mean(1)
                made.append(F.relu(own(xs[i]) + near(mean)))
            xs = made
        return self.out(xs[0]).squeeze(-1)


def main():
    torch.manual_seed(0)
    device = 'cuda'
    fanouts = (10, 5)
    graph = Graph(nodes=200_000, degree=20, features=256)
    model = Sage(256, 512, fanouts).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(1)
    order = torch.randperm(len(graph.y), generator=g)
    for step in range(40):
        seeds = order[step * 2048:(step + 1) * 2048]
        xs = [x.to(device) for x in graph.sample(seeds, fanouts, g)]
        loss = F.binary_cross_entropy_with_logits(model(xs), graph.y[seeds].to(device),
                                                  pos_weight=torch.tensor(20.0, device=device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(step, f'{loss.item():.4f}', flush=True)
    model.eval()
    risky = []
    with torch.inference_mode():
        for seeds in order[-8192:].split(2048):
            xs = [x.to(device) for x in graph.sample(seeds, fanouts, g)]
            risky.append(model(xs).sigmoid().cpu())
    print('scored', len(torch.cat(risky)))


main()
