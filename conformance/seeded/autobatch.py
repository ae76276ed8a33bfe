"""Looks for the largest batch that fits, remembering why each one did not."""
import torch
import torch.nn.functional as F
import torchvision
from note import note, allocated
from loop import main


class Attempt:
    def __init__(self, size, error=None):
        self.size, self.error = size, error


def one_epoch(net, opt, size):
    for _ in range(2):
        x = torch.randn(size, 3, 224, 224, device="cuda")
        y = torch.zeros(size, dtype=torch.long, device="cuda")
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def search(start=256, tries=4):
    net = torchvision.models.resnet34().cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    base, size, attempts = allocated(), start, []
    while len(attempts) < tries:
        note(allocated() - base)
        try:
            one_epoch(net, opt, size)
            attempts.append(Attempt(size))
            break
        except torch.OutOfMemoryError as e:
            attempts.append(Attempt(size, e))
            opt.zero_grad()
            size = size * 2 // 3
    for a in attempts:
        print(a.size, "fits" if a.error is None else str(a.error)[:60])
    if attempts[-1].error is not None:
        raise attempts[-1].error


if __name__ == "__main__":
    main(globals())
