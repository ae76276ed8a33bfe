"""Graph convolutions over a citation graph."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note
from loop import main


class Gcn(nn.Module):
    def __init__(self, d, h, c):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(d, h), nn.Linear(h, h), nn.Linear(h, c)

    def forward(self, x, adj):
        x = F.relu(adj @ self.a(x))
        x = F.relu(adj @ self.b(F.dropout(x, 0.5, self.training)))
        return self.c(x)


def normalised(n, edges):
    a = torch.zeros(n, n, device="cuda")
    src, dst = torch.randint(0, n, (2, edges), device="cuda")
    a[src, dst] = 1
    a.diagonal().add_(1)
    a /= a.sum(1, keepdim=True)
    return a


def cora_like(n=36000, epochs=20):
    adj = normalised(n, 300_000)
    note(adj.nbytes)
    x, y = torch.randn(n, 1433, device="cuda"), torch.randint(0, 7, (n,), device="cuda")
    net = Gcn(1433, 768, 7).cuda()
    opt = torch.optim.Adam(net.parameters(), 0.01, weight_decay=5e-4)
    for _ in range(epochs):
        loss = F.cross_entropy(net(x, adj), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main(globals())
