"""Find the largest batch for a point-cloud network, then train with it."""
import torch
from torch import nn


class EdgeConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mlp = nn.Sequential(nn.Conv2d(2 * i, o, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))

    def forward(self, x, k=16):
        b, c, n = x.shape
        near = torch.cdist(x.transpose(1, 2), x.transpose(1, 2)).topk(k, largest=False).indices
        picked = torch.gather(x, 2, near.view(b, 1, n * k).expand(b, c, n * k)).view(b, c, n, k)
        centre = x.unsqueeze(3).expand_as(picked)
        return self.mlp(torch.cat([picked - centre, centre], 1)).amax(3)


class PointNetwork(nn.Module):
    def __init__(self, classes=40):
        super().__init__()
        self.convs = nn.ModuleList([EdgeConv(3, 64), EdgeConv(64, 64), EdgeConv(64, 128)])
        self.head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, classes))

    def forward(self, x):
        parts = []
        for conv in self.convs:
            x = conv(x)
            parts.append(x)
        return self.head(torch.cat([p.amax(2) for p in parts], 1))


class BatchSizeFinder:
    def __init__(self, candidates):
        self.candidates = candidates
        self.tried = []

    def probe(self, net, size):
        cloud = torch.randn(size, 3, 1024, device="cuda")
        label = torch.zeros(size, dtype=torch.long, device="cuda")
        loss = nn.functional.cross_entropy(net(cloud), label)
        loss.backward()
        net.zero_grad(set_to_none=True)
        return True

    def search(self, net):
        for size in self.candidates:
            outcome = None
            try:
                self.probe(net, size)
            except torch.OutOfMemoryError as e:
                outcome = e
            self.tried.append((size, outcome))
            if outcome is None:
                return size
        return self.candidates[-1]

    def table(self):
        return "\n".join(f"{size:>5}  {'ok' if out is None else 'too large'}" for size, out in self.tried)


def fit(net, size, steps=6):
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True)
    running = 0.0
    for _ in range(steps):
        cloud = torch.randn(size, 3, 1024, device="cuda")
        cloud = cloud * (0.8 + 0.4 * torch.rand(size, 1, 1, device="cuda"))
        label = torch.zeros(size, dtype=torch.long, device="cuda")
        loss = nn.functional.cross_entropy(net(cloud), label)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    print("mean loss", running / steps)


net = PointNetwork().cuda()
finder = BatchSizeFinder([256, 192, 128, 64, 48])
size = finder.search(net)
print(finder.table())
fit(net, size)
