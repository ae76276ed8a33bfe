import torch
import torch.nn as nn
import torch.nn.functional as F

# dcgan on 64x64 faces, quick experiment with hinge loss
nz, ngf, ndf, bs = 128, 96, 96, 256
dev = "cuda"
torch.backends.cudnn.benchmark = False


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))


G = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(),
    up(ngf * 8, ngf * 4), up(ngf * 4, ngf * 2), up(ngf * 2, ngf),
    nn.ConvTranspose2d(ngf, 3, 4, 2, 1), nn.Tanh()).to(dev)
D = nn.Sequential(
    nn.Conv2d(3, ndf, 4, 2, 1), nn.LeakyReLU(0.2),
    down(ndf, ndf * 2), down(ndf * 2, ndf * 4), down(ndf * 4, ndf * 8),
    nn.Conv2d(ndf * 8, 1, 4, 1, 0)).to(dev)
optG = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.999))
optD = torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.999))


class Board:
    """What goes to the plots at the end of the run."""

    def __init__(self, every=8):
        self.every, self.n, self.curves = every, 0, {}

    def add(self, **values):
        self.n += 1
        for key, value in values.items():
            self.curves.setdefault(key, []).append(value)
        if self.n % self.every == 0:
            self.show()

    def show(self):
        for key, curve in self.curves.items():
            print(self.n, key, float(sum(curve[-self.every:]) / self.every))


board = Board()
for it in range(16):
    real = torch.rand(bs, 3, 64, 64, device=dev) * 2 - 1

    # discriminator
    z = torch.randn(bs, nz, 1, 1, device=dev)
    with torch.no_grad():
        fake = G(z)
    d_real, d_fake = D(real).flatten(), D(fake).flatten()
    lossD = F.relu(1 - d_real).mean() + F.relu(1 + d_fake).mean()
    optD.zero_grad()
    lossD.backward()
    optD.step()

    # generator
    z = torch.randn(bs, nz, 1, 1, device=dev)
    lossG = -D(G(z)).mean()
    optG.zero_grad()
    lossG.backward()
    optG.step()

    # how far apart are the images of two close codes
    z2 = z + 0.05 * torch.randn_like(z)
    smooth = (G(z2) - G(z)).abs().mean()

    board.add(lossD=lossD.item(), lossG=lossG.item(), smooth=smooth)
board.show()
