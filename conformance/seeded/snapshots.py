"""Snapshot ensembles with a cyclic learning rate; the members vote at the end."""
import copy
import math
import torch
import torch.nn.functional as F
import torchvision
from note import note, size_of_model
from loop import main


def lr_at(i, cycle, top=0.1):
    return top / 2 * (math.cos(math.pi * (i % cycle) / cycle) + 1)


class Ensemble:
    def __init__(self):
        self.members = []

    def add(self, net):
        self.members.append(copy.deepcopy(net).eval())

    @torch.no_grad()
    def __call__(self, x):
        return sum(m(x).softmax(-1) for m in self.members) / len(self.members)


def cycles(n=12, each=3):
    net, votes = torchvision.models.vgg11(num_classes=1000).cuda(), Ensemble()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for i in range(n * each):
        for g in opt.param_groups:
            g["lr"] = lr_at(i, each)
        x, y = torch.randn(8, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (8,), device="cuda")
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % each == each - 1:
            votes.add(net)
            note(sum(size_of_model(m) for m in votes.members))
    print(votes(x).mean())


if __name__ == "__main__":
    main(globals())
