"""Instance discrimination with a growing set of negatives."""
import torch
from torch import nn
import torch.nn.functional as F
import torchvision
from note import at_failure
from loop import main


class Negatives:
    def __init__(self, dim):
        self.keys = torch.empty(0, dim, device="cuda")
        self.maps = torch.empty(0, 96 * 28 * 28, device="cuda")

    def enqueue(self, z, m):
        self.keys = torch.cat([self.keys, z.detach()])
        self.maps = torch.cat([self.maps, m.detach().flatten(1)])

    def used(self):
        return self.keys.nbytes + self.maps.nbytes


def pretrain(steps=120, batch=128):
    net = torchvision.models.squeezenet1_1(num_classes=128).cuda()
    low = nn.Sequential(nn.Conv2d(3, 96, 4, 4), nn.ReLU()).cuda()
    opt = torch.optim.SGD([*net.parameters(), *low.parameters()], 0.03)
    bank = Negatives(128)
    with at_failure(bank.used):
        for _ in range(steps):
            x = torch.randn(batch, 3, 112, 112, device="cuda")
            z = F.normalize(net(x), dim=-1)
            m = low(x)
            logits = torch.cat([(z * z.roll(1, 0)).sum(-1, keepdim=True), z @ bank.keys.t()], 1) / 0.07
            loss = F.cross_entropy(logits, torch.zeros(batch, dtype=torch.long, device="cuda")) + m.mean() * 0
            opt.zero_grad()
            loss.backward()
            opt.step()
            bank.enqueue(z, m)


if __name__ == "__main__":
    main(globals())
