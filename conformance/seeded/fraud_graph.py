"""GraphSAGE on a transaction graph, full batch, with an ablation over feature groups at the end."""
import itertools
import torch
from torch import nn
import torch.nn.functional as F


class Sage(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own, self.near = nn.Linear(i, o), nn.Linear(i, o, bias=False)

    def forward(self, x, edges, degree):
        source, target = edges
        pooled = torch.zeros_like(x).index_add_(0, target, x[source]) / degree
        return self.own(x) + self.near(pooled)


class Detector(nn.Module):
    def __init__(self, columns, hidden=128, depth=3):
        super().__init__()
        sizes = [columns] + [hidden] * depth
        self.convs = nn.ModuleList(Sage(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, edges, degree):
        for conv in self.convs:
            x = F.dropout(F.relu(conv(x, edges, degree)), 0.3, self.training)
        return self.out(x)


class Experiment:
    def __init__(self, nodes=160_000, links=1_200_000, columns=96):
        self.x = torch.randn(nodes, columns, device="cuda")
        self.edges = torch.randint(0, nodes, (2, links), device="cuda")
        self.y = torch.zeros(nodes, dtype=torch.long, device="cuda")
        self.degree = torch.bincount(torch.randint(0, nodes, (links,)), minlength=nodes).clamp(min=1).float()[:, None].cuda()
        self.net = Detector(columns).cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), 5e-3, weight_decay=5e-4, fused=True)
        self.best, self.history = None, []

    def epoch(self):
        self.net.train()
        out = self.net(self.x, self.edges, self.degree)
        loss = F.cross_entropy(out[:120_000], self.y[:120_000], weight=torch.tensor([0.1, 0.9], device="cuda"))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def scores(self, x):
        self.net.eval()
        return self.net(x, self.edges, self.degree)[120_000:].softmax(-1)[:, 1]

    def fit(self, epochs=20):
        for e in range(epochs):
            self.history.append(self.epoch())
            if e % 5 == 4:
                self.best = {n: t.cpu() for n, t in self.net.state_dict().items()}
                print(e + 1, round(self.history[-1], 4), self.scores(self.x).mean().item())

    def ablate(self, groups):
        self.net.load_state_dict(self.best)
        full = self.scores(self.x)
        table = {}
        for pair in itertools.combinations(groups, 2):
            masked = self.x.clone()
            for name in pair:
                masked[:, groups[name]] = 0
            table[pair] = (full - self.scores(masked)).abs().mean().item()
        return table


if __name__ == "__main__":
    exp = Experiment()
    exp.fit()
    groups = {"amount": slice(0, 24), "time": slice(24, 48), "merchant": slice(48, 72), "device": slice(72, 96)}
    for pair, effect in sorted(exp.ablate(groups).items(), key=lambda kv: -kv[1]):
        print("+".join(pair), effect)
