"""Augmentation on the card, beside the training, on a stream of its own."""
import torch
import torch.nn.functional as F
import torchvision
from note import note, free_of_stream
from loop import main


class Augmenter:
    def __init__(self, beside=True):
        self.stream = torch.cuda.Stream() if beside else torch.cuda.current_stream()

    def blur(self, x):
        k = torch.ones(3, 1, 9, 9, device="cuda") / 81
        for _ in range(2):
            x = F.conv2d(F.pad(x, (4, 4, 4, 4), mode="reflect"), k, groups=3)
        return x

    @torch.no_grad()
    def __call__(self, n):
        with torch.cuda.stream(self.stream):
            raw = torch.randn(n, 3, 320, 320, device="cuda")
            views = torch.stack([self.blur(raw), raw.flip(-1), self.blur(raw.roll(7, -1))])
            small = F.interpolate(views.flatten(0, 1), size=112)
        torch.cuda.current_stream().wait_stream(self.stream)
        return small


def selfsup(steps=5, n=128, beside=1):
    net, aug = torchvision.models.resnet18().cuda(), Augmenter(bool(beside))
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(steps):
        x = aug(n)
        a, b, c = net(x).chunk(3)
        loss = F.mse_loss(a, b) + F.mse_loss(a, c)
        opt.zero_grad()
        loss.backward()
        opt.step()
        aug.stream.wait_stream(torch.cuda.current_stream())
        del x, a, b, c, loss
        note(free_of_stream(aug.stream))


if __name__ == "__main__":
    main(globals())
