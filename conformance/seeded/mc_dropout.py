"""Uncertainty of a regression net by Monte Carlo dropout, after a short training."""
import torch
from torch import nn
from note import Growth
from loop import main


class Tab(nn.Module):
    def __init__(self, n=256, w=2048, depth=6):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [nn.Linear(n if i == 0 else w, w), nn.SiLU(), nn.Dropout(0.1)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(w, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def uncertainty(net, rows, passes):
    net.train()  # dropout stays on
    draws, grown = [], Growth()
    for _ in range(passes):
        draws.append(net(rows))
        grown.note()
    return torch.stack(draws).var(0)


def main_(passes=100):
    net = Tab().cuda()
    opt = torch.optim.RMSprop(net.parameters(), 1e-4)
    for _ in range(5):
        x, y = torch.randn(4096, 256, device="cuda"), torch.zeros(4096, device="cuda")
        nn.functional.huber_loss(net(x), y).backward()
        opt.step()
        opt.zero_grad()
    del x, y
    rows = torch.randn(8192, 256, device="cuda")
    print(uncertainty(net, rows, passes).mean().item())


if __name__ == "__main__":
    main(globals())
