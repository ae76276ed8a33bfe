"""Click prediction: categorical tables, dense features, Adam over all of it."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note, size_of
from loop import main


class Dlrm(nn.Module):
    def __init__(self, sizes, d=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, d) for n in sizes)
        self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, d))
        self.top = nn.Sequential(nn.Linear(d * (len(sizes) + 1), 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, dense, cats):
        parts = [self.bottom(dense)] + [t(c) for t, c in zip(self.tables, cats)]
        return self.top(torch.cat(parts, -1)).squeeze(-1)


def clicks(steps=3, batch=4096):
    sizes = [1_200_000, 900_000, 700_000, 400_000, 300_000, 90_000, 20_000, 1000]
    net = Dlrm(sizes).cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    note(2 * size_of(list(net.parameters())))
    for _ in range(steps):
        dense = torch.randn(batch, 13, device="cuda")
        cats = [torch.randint(0, n, (batch,), device="cuda") for n in sizes]
        loss = F.binary_cross_entropy_with_logits(net(dense, cats), torch.zeros(batch, device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main(globals())
