from __future__ import print_function
# DCGAN, adapted from the tutorial
import argparse
import random
import torch
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser()
parser.add_argument('--batchSize', type=int, default=1024)
parser.add_argument('--imageSize', type=int, default=128)
parser.add_argument('--nz', type=int, default=100)
parser.add_argument('--ngf', type=int, default=32)
parser.add_argument('--ndf', type=int, default=32)
parser.add_argument('--iters', type=int, default=140)
opt = parser.parse_args()
random.seed(999)
torch.manual_seed(999)
device = torch.device("cuda:0")
nz, ngf, ndf = opt.nz, opt.ngf, opt.ndf


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        chans = [nz, ngf * 8, ngf * 8, ngf * 4, ngf * 2, ngf]
        layers = []
        for i in range(len(chans) - 1):
            layers += [nn.ConvTranspose2d(chans[i], chans[i + 1], 4, 1 if i == 0 else 2, 0 if i == 0 else 1, bias=False),
                       nn.BatchNorm2d(chans[i + 1]), nn.ReLU(True)]
        layers += [nn.ConvTranspose2d(ngf, 3, 4, 2, 1, bias=False), nn.Tanh()]
        self.main = nn.Sequential(*layers)

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        chans = [3, ndf, ndf * 2, ndf * 4, ndf * 8, ndf * 8]
        layers = []
        for a, b in zip(chans[:-1], chans[1:]):
            layers += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        layers += [nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False)]
        self.main = nn.Sequential(*layers)

    def forward(self, x):
        return self.main(x).view(-1)


netG, netD = Generator().to(device), Discriminator().to(device)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(64, nz, 1, 1, device=device)
optD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

img_list = []
G_losses, D_losses = [], []
ones = torch.ones(opt.batchSize, device=device)
zeros = torch.zeros(opt.batchSize, device=device)
for i in range(opt.iters):
    # (1) update D
    netD.zero_grad()
    real = torch.rand(opt.batchSize, 3, opt.imageSize, opt.imageSize, device=device) * 2 - 1
    errD_real = criterion(netD(real), ones)
    errD_real.backward()
    noise = torch.randn(opt.batchSize, nz, 1, 1, device=device)
    fake = netG(noise)
    errD_fake = criterion(netD(fake.detach()), zeros)
    errD_fake.backward()
    optD.step()
    # (2) update G
    netG.zero_grad()
    errG = criterion(netD(fake), ones)
    errG.backward()
    optG.step()

    G_losses.append(errG.item())
    D_losses.append((errD_real + errD_fake).item())
    # keep samples for the animation
    img_list.append(fake.detach())
    if i % 20 == 0:
        print('[%d/%d] Loss_D: %.4f Loss_G: %.4f' % (i, opt.iters, D_losses[-1], G_losses[-1]))

print("frames for the gif:", len(img_list), tuple(img_list[0].shape))
