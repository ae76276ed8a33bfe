"""Speech enhancement, 1-D convolutional autoencoder; keeps a smoothed validation curve beside the training."""
import torch
from torch import nn
from note import Growth
from loop import main


class Smoothed:
    def __init__(self, beta=0.98):
        self.beta, self.value = beta, None

    def __call__(self, x):
        self.value = x if self.value is None else self.beta * self.value + (1 - self.beta) * x
        return self.value


def encoder(c=48):
    layers = [nn.Conv1d(1, c, 8, 4, 2), nn.GELU()]
    for i in range(4):
        layers += [nn.Conv1d(c << i, c << (i + 1), 8, 4, 2), nn.GroupNorm(8, c << (i + 1)), nn.GELU()]
    return nn.Sequential(*layers)


def decoder(c=48):
    layers = []
    for i in reversed(range(4)):
        layers += [nn.ConvTranspose1d(c << (i + 1), c << i, 8, 4, 2), nn.GELU()]
    return nn.Sequential(*layers, nn.ConvTranspose1d(c, 1, 8, 4, 2))


def si_sdr(a, b):
    scale = (a * b).sum(-1, keepdim=True) / (b.pow(2).sum(-1, keepdim=True) + 1e-8)
    noise = a - scale * b
    return 10 * torch.log10((scale * b).pow(2).sum(-1) / (noise.pow(2).sum(-1) + 1e-8) + 1e-8).mean()


def enhance(steps=24):
    net = nn.Sequential(encoder(), decoder()).cuda()
    opt, curve, grown = torch.optim.AdamW(net.parameters(), 1e-3), Smoothed(), Growth()
    heldout = torch.randn(12, 1, 65536, device="cuda")
    for step in range(steps):
        clean = torch.randn(24, 1, 65536, device="cuda")
        loss = -si_sdr(net(clean + 0.1 * torch.randn_like(clean)), clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve(si_sdr(net(heldout), heldout))
        if step % 8 == 0:
            print(step, loss.item(), curve.value.item())
        del clean, loss
        grown.note()


if __name__ == "__main__":
    main(globals())
