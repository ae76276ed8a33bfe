"""Super resolution with a VGG perceptual loss."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import vgg16


class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.PReLU(), nn.Conv2d(c, c, 3, padding=1))

    def forward(self, x):
        return x + self.body(x)


class Generator(nn.Module):
    def __init__(self, c=64, blocks=8, scale=4):
        super().__init__()
        self.head = nn.Conv2d(3, c, 9, padding=4)
        self.body = nn.Sequential(*[ResBlock(c) for _ in range(blocks)])
        ups = []
        for _ in range(scale // 2):
            ups += [nn.Conv2d(c, 4 * c, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()]
        self.up = nn.Sequential(*ups)
        self.tail = nn.Conv2d(c, 3, 9, padding=4)

    def forward(self, x):
        x = self.head(x)
        return torch.tanh(self.tail(self.up(x + self.body(x))))


class PerceptualLoss(nn.Module):
    def __init__(self, layers=(3, 8, 15, 22)):
        super().__init__()
        self.vgg = vgg16(weights=None).features[:23].eval()
        for p in self.vgg.parameters():
            p.requires_grad = False
        self.n = len(layers)
        self.feats = []
        for i in layers:
            self.vgg[i].register_forward_hook(self._grab)

    def _grab(self, module, inputs, output):
        self.feats.append(output)

    def forward(self, fake, real):
        self.vgg(fake)
        got = self.feats[-self.n:]
        with torch.no_grad():
            self.vgg(real)
            want = self.feats[-self.n:]
        return sum(F.l1_loss(a, b) for a, b in zip(got, want)) / self.n


def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a, b).clamp(min=1e-8) / 4)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--lr", type=float, default=1e-4)
    ap.add_argument("--crop", type=int, default=192)
    ap.add_argument("--lambda-pix", type=float, default=1.0)
    ap.add_argument("--lambda-vgg", type=float, default=0.06)
    args = ap.parse_args()

    torch.manual_seed(0)
    hr = torch.rand(192, 3, args.crop, args.crop) * 2 - 1
    lr_images = F.interpolate(hr, scale_factor=0.25, mode="bicubic", antialias=True)
    loader = DataLoader(TensorDataset(lr_images, hr), batch_size=args.batch, shuffle=True, pin_memory=False)

    gen = Generator().cuda()
    perceptual = PerceptualLoss().cuda()
    opt = torch.optim.Adam(gen.parameters(), lr=args.lr, betas=(0.9, 0.99))

    for step, (low, high) in enumerate(loader):
        low, high = low.cuda(), high.cuda()
        fake = gen(low)
        pix = F.l1_loss(fake, high)
        vgg = perceptual(fake, high)
        loss = args.lambda_pix * pix + args.lambda_vgg * vgg
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print(f"{step:4d} pix {pix.item():.4f} vgg {vgg.item():.4f} psnr {psnr(fake.detach(), high).item():.2f}")


if __name__ == "__main__":
    main()
