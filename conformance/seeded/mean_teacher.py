"""Mean teacher with three decays tried at once."""
from copy import deepcopy
import torch
from torch import nn
from note import note, size_of_model
from loop import main


class Net(nn.Module):
    def __init__(self, d=3072, n=8):
        super().__init__()
        self.inp = nn.Linear(512, d)
        self.body = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
        self.out = nn.Linear(d, 64)

    def forward(self, x):
        x = self.inp(x).relu()
        for lin in self.body:
            x = x + lin(x).relu()
        return self.out(x)


class Decayed:
    def __init__(self, net, decay):
        self.net, self.decay = deepcopy(net).requires_grad_(False), decay

    @torch.no_grad()
    def pull(self, student):
        for a, b in zip(self.net.parameters(), student.parameters()):
            a.mul_(self.decay).add_(b, alpha=1 - self.decay)


def semi(steps=6):
    student = Net().cuda()
    teachers = [Decayed(student, d) for d in (0.9, 0.99, 0.999, 0.9999, 0.99999)]
    note(sum(size_of_model(t.net) for t in teachers))
    opt = torch.optim.SGD(student.parameters(), 0.01)
    for _ in range(steps):
        x = torch.randn(1024, 512, device="cuda")
        with torch.no_grad():
            soft = sum(t.net(x) for t in teachers) / len(teachers)
        loss = (student(x + 0.1 * torch.randn_like(x)) - soft).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        for t in teachers:
            t.pull(student)


if __name__ == "__main__":
    main(globals())
