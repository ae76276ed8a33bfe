"""Land cover segmentation with a small U-Net. A quick check after the first epochs, the full validation later."""
import math
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn

device = torch.device('cuda')
CLASSES = 19


def double(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
        nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        w = width
        self.d1, self.d2, self.d3 = double(4, w), double(w, 2 * w), double(2 * w, 4 * w)
        self.mid = double(4 * w, 8 * w)
        self.u3, self.u2, self.u1 = double(12 * w, 4 * w), double(6 * w, 2 * w), double(3 * w, w)
        self.out = nn.Conv2d(w, CLASSES, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        c = self.d3(F.max_pool2d(b, 2))
        y = self.mid(F.max_pool2d(c, 2))
        for skip, up in ((c, self.u3), (b, self.u2), (a, self.u1)):
            y = up(torch.cat([F.interpolate(y, scale_factor=2), skip], 1))
        return self.out(y)


class MeanIoU:
    """update() with each batch, compute() at the end, as in the usual metric libraries."""

    def __init__(self, classes):
        self.classes = classes
        self.matrix = torch.zeros(classes, classes, dtype=torch.long)
        self.state = {'preds': [], 'target': []}

    def update(self, logits, target):
        self.state['preds'].append(logits.softmax(1))
        self.state['target'].append(target)

    def compute(self):
        for p, t in zip(self.state['preds'], self.state['target']):
            pair = (t.flatten() * self.classes + p.argmax(1).cpu().flatten()).clamp_(0, self.classes ** 2 - 1)
            self.matrix += torch.bincount(pair, minlength=self.classes ** 2).view(self.classes, self.classes)
        inter = self.matrix.diag().float()
        union = self.matrix.sum(0) + self.matrix.sum(1) - self.matrix.diag()
        return (inter / union.clamp(min=1)).mean().item()

    def reset(self):
        self.matrix.zero_()
        for part in self.state.values():
            part.clear()


def tiles(n, batch, size, seed):
    gen = torch.Generator().manual_seed(seed)
    for _ in range(math.ceil(n / batch)):
        yield torch.zeros(batch, 4, size, size), torch.randint(CLASSES, (batch, size, size), generator=gen)


def validate(model, metric, n, amp=True):
    model.eval()
    metric.reset()
    ctx = torch.autocast('cuda', torch.bfloat16) if amp else nullcontext()
    with torch.inference_mode(), ctx:
        for image, mask in tiles(n, 4, 512, 99):
            metric.update(model(image.to(device)), mask)
    score = metric.compute()
    model.train()
    return score


model = UNet().to(device)
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
metric = MeanIoU(CLASSES)
for epoch in range(3):
    for image, mask in tiles(24, 6, 256, epoch):
        with torch.autocast('cuda', torch.bfloat16):
            loss = F.cross_entropy(model(image.to(device)), mask.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    schedule.step()
    tiles_to_check = 16 if epoch < 2 else 128
    print(f'epoch {epoch}: loss {loss.item():.3f} mIoU {validate(model, metric, tiles_to_check):.3f}')
