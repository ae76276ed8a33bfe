"""A wide tabular net; the optimizer is plain, with weight decay."""
import torch
from note import note, allocated
from loop import main
from zoo import mlp


def tabular(steps=4, width=4096):
    net = mlp(width, 12, 300, 1).cuda()
    opt = torch.optim.SGD(net.parameters(), 1e-3, weight_decay=1e-2)
    for _ in range(steps):
        x = torch.randn(512, 300, device="cuda")
        net(x).pow(2).mean().backward()
        before = allocated()
        torch.cuda.reset_peak_memory_stats()
        opt.step()
        if _:
            note(torch.cuda.max_memory_allocated() - before)
        opt.zero_grad()
        del x


if __name__ == "__main__":
    main(globals())
