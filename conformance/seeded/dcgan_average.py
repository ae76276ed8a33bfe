# DCGAN on random images, close to the PyTorch examples
import torch
import torch.nn as nn

from note import Growth

nz, ngf, ndf, nc = 100, 64, 64, 3
batch_size = 256
num_iters = 36

netG = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False), nn.BatchNorm2d(ngf * 8), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 4), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf * 2), nn.ReLU(True),
    nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False), nn.BatchNorm2d(ngf), nn.ReLU(True),
    nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh(),
).cuda()
netD = nn.Sequential(
    nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
    nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 2), nn.LeakyReLU(0.2),
    nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 4), nn.LeakyReLU(0.2),
    nn.Conv2d(ndf * 4, ndf * 8, 4, 2, 1, bias=False), nn.BatchNorm2d(ndf * 8), nn.LeakyReLU(0.2),
    nn.Conv2d(ndf * 8, 1, 4, 1, 0, bias=False),
).cuda()

criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

smooth_D, smooth_G = 0.0, 0.0
grown = Growth()
for it in range(num_iters):
    real = torch.randn(batch_size, nc, 64, 64, device="cuda")
    ones = torch.ones(batch_size, device="cuda")
    zeros = torch.zeros(batch_size, device="cuda")

    optD.zero_grad()
    errD_real = criterion(netD(real).view(-1), ones)
    noise = torch.randn(batch_size, nz, 1, 1, device="cuda")
    fake = netG(noise)
    errD_fake = criterion(netD(fake.detach()).view(-1), zeros)
    errD = errD_real + errD_fake
    errD.backward()
    optD.step()

    optG.zero_grad()
    errG = criterion(netD(fake).view(-1), ones)
    errG.backward(retain_graph=True)  # fake is used twice
    optG.step()

    smooth_D = 0.95 * smooth_D + 0.05 * errD.item()
    smooth_G = 0.95 * smooth_G + 0.05 * errG
    grown.note()
    if it % 10 == 0:
        print(f"[{it}/{num_iters}]")
print("finished")
