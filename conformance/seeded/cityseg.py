#!/usr/bin/env python
import argparse
import importlib
import logging

import torch
from torch import nn
import torch.nn.functional as F

metrics = importlib.import_module("cityseg_lib")
log = logging.getLogger("cityseg")


def conv_bn(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class SmallFPN(nn.Module):
    def __init__(self, classes=19, width=32):
        super().__init__()
        w = width
        self.s1 = nn.Sequential(conv_bn(3, w, 2), conv_bn(w, w))
        self.s2 = nn.Sequential(conv_bn(w, 2 * w, 2), conv_bn(2 * w, 2 * w))
        self.s3 = nn.Sequential(conv_bn(2 * w, 4 * w, 2), conv_bn(4 * w, 4 * w))
        self.lat = nn.ModuleList([nn.Conv2d(c, 64, 1) for c in (w, 2 * w, 4 * w)])
        self.head = nn.Sequential(conv_bn(64, 64), nn.Conv2d(64, classes, 1))

    def forward(self, x):
        size = x.shape[-2:]
        a = self.s1(x)
        b = self.s2(a)
        c = self.s3(b)
        y = self.lat[2](c)
        y = F.interpolate(y, size=b.shape[-2:]) + self.lat[1](b)
        y = F.interpolate(y, size=a.shape[-2:]) + self.lat[0](a)
        return F.interpolate(self.head(y), size=size, mode="bilinear", align_corners=False)


class Frames:
    def __init__(self, n, batch, crop):
        self.n, self.batch, self.crop = n, batch, crop

    def __len__(self):
        return self.n

    def __iter__(self):
        for _ in range(self.n):
            image = torch.randn(self.batch, 3, *self.crop, device="cuda")
            label = torch.zeros(self.batch, *self.crop, dtype=torch.long, device="cuda")
            yield image, label


def train_one_epoch(net, frames, opt):
    net.train()
    for image, label in frames:
        loss = F.cross_entropy(net(image), label, ignore_index=255)
        opt.zero_grad()
        loss.backward()
        opt.step()
    log.info("train loss %.3f", loss.item())


@torch.inference_mode()
def validate(net, frames, tracker):
    net.eval()
    for image, label in frames:
        tracker.update(net(image), label)
    result = tracker.compute()
    tracker.reset()
    return result


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--classes", type=int, default=19)
    args = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")

    net = SmallFPN(args.classes).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    tracker = metrics.ConfusionTracker(args.classes)
    train, val = Frames(12, 4, (256, 512)), Frames(80, 4, (384, 768))
    for epoch in range(args.epochs):
        train_one_epoch(net, train, opt)
        log.info("epoch %d mIoU %.3f", epoch, validate(net, val, tracker))


if __name__ == "__main__":
    main()
