"""MAML on few-shot image tasks with functional_call."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


class ConvNet(nn.Module):
    def __init__(self, ways=5, c=64):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(i, c, 3, padding=1) for i in (3, c, c, c))
        self.norms = nn.ModuleList(nn.GroupNorm(8, c) for _ in range(4))
        self.head = nn.Linear(c * 25, ways)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.max_pool2d(F.relu(norm(conv(x))), 2)
        return self.head(x.flatten(1))


class TaskSampler:
    def __init__(self, ways=5, shots=5, queries=10, side=80):
        self.ways, self.shots, self.queries, self.side = ways, shots, queries, side

    def __call__(self):
        s, q = self.ways * self.shots, self.ways * self.queries
        label = torch.arange(self.ways, device="cuda")
        return (torch.randn(s, 3, self.side, self.side, device="cuda"), label.repeat(self.shots),
                torch.randn(q, 3, self.side, self.side, device="cuda"), label.repeat(self.queries))


class Adaptation:
    """One task's inner loop."""
    drift = []

    def __init__(self, net, lr, steps):
        self.net, self.lr, self.steps = net, lr, steps

    def __call__(self, x, y):
        start = dict(self.net.named_parameters())
        fast = start
        for _ in range(self.steps):
            loss = F.cross_entropy(functional_call(self.net, fast, (x,)), y)
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {n: p - self.lr * g for (n, p), g in zip(fast.items(), grads)}
        return fast

    def measure(self, fast):
        """How far the weights moved, for the plot in the appendix."""
        moved = sum((fast[n] - p.detach()).square().sum() for n, p in self.net.named_parameters())
        Adaptation.drift.append(moved)


def meta_train(iterations=10, tasks=3):
    torch.manual_seed(4)
    net, sample = ConvNet().cuda(), TaskSampler()
    outer = torch.optim.Adam(net.parameters(), 1e-3)
    for it in range(iterations):
        outer.zero_grad()
        total = 0.0
        for _ in range(tasks):
            xs, ys, xq, yq = sample()
            adapt = Adaptation(net, lr=0.01, steps=3)
            fast = adapt(xs, ys)
            loss = F.cross_entropy(functional_call(net, fast, (xq,)), yq) / tasks
            loss.backward()
            total += loss.item()
        outer.step()
        # probe the new initialisation on an unseen task
        xs, ys, *_ = sample()
        probe = Adaptation(net, lr=0.01, steps=8)
        probe.measure(probe(xs, ys))
        if it % 5 == 4:
            print(it + 1, round(total, 4), "tasks", (it + 1) * tasks)
    return Adaptation.drift


if __name__ == "__main__":
    drift = meta_train()
    print("drift", float(sum(drift)) / len(drift))
