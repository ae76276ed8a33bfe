"""Adagrad for rare features."""
import torch
from note import allocated
from watch import when_full
from loop import main
from zoo import mlp


def sweep_rates(steps=3):
    net = mlp(4096, 10, 256, 16).cuda()
    opt = torch.optim.Adagrad(net.parameters(), 0.01, foreach=True)
    before = [allocated()]
    when_full(lambda: allocated() - before[0])
    for _ in range(steps):
        net(torch.randn(256, 256, device="cuda")).pow(2).mean().backward()
        before[:] = [allocated()]
        opt.step()
        opt.zero_grad()


if __name__ == "__main__":
    main(globals())
