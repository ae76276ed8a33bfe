"""Adversarial robustness of VGG by projected gradients."""
import torch
import torch.nn.functional as F
import torchvision
from note import note, size_of
from loop import main


class Pgd:
    def __init__(self, net, eps=8 / 255, alpha=2 / 255, n=7):
        self.net, self.eps, self.alpha, self.n = net, eps, alpha, n

    def __call__(self, x, y):
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(self.n):
            F.cross_entropy(self.net(x + delta), y).backward()
            with torch.no_grad():
                delta += self.alpha * delta.grad.sign()
                delta.clamp_(-self.eps, self.eps)
            delta.grad = None
        return (x + delta).detach()


def robust_accuracy(batches=4):
    net = torchvision.models.vgg16().cuda().eval()
    attack = Pgd(net)
    right = 0
    for _ in range(batches):
        x, y = torch.rand(4, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (4,), device="cuda")
        bad = attack(x, y)
        with torch.no_grad():
            right += (net(bad).argmax(-1) == y).sum().item()
        note(size_of([p.grad for p in net.parameters() if p.grad is not None]))
    print(right)


if __name__ == "__main__":
    main(globals())
