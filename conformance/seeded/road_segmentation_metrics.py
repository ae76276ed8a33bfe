import random

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models.segmentation import fcn_resnet50

NUM_CLASSES = 19
device = torch.device("cuda")


class RoadScenes(Dataset):
    """Random crops in the shape of Cityscapes."""

    def __init__(self, n, size=256):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        img = torch.rand(3, self.size, self.size, generator=g)
        mask = torch.randint(0, NUM_CLASSES, (self.size, self.size), generator=g)
        if random.random() < 0.5:
            img, mask = img.flip(-1), mask.flip(-1)
        return img, mask


class SegMetrics:
    """Pixel accuracy and mean IoU over an epoch."""

    def __init__(self, num_classes):
        self.num_classes = num_classes
        self.reset()

    def reset(self):
        self.pred, self.true = [], []
        self.loss = 0.0

    def update(self, logits, target, loss):
        self.pred.append(logits.detach())
        self.true.append(target.cpu())
        self.loss += loss.item()

    def compute(self):
        hist = torch.zeros(self.num_classes, self.num_classes)
        for p, t in zip(self.pred, self.true):
            t, p = t.flatten(), p.argmax(1).cpu().flatten()
            valid = (t < self.num_classes) & (p >= 0) & (p < self.num_classes)
            k = t[valid] * self.num_classes + p[valid]
            hist += torch.bincount(k, minlength=self.num_classes ** 2).view_as(hist)
        inter = hist.diag()
        union = hist.sum(0) + hist.sum(1) - inter
        return {
            "acc": (inter.sum() / hist.sum()).item(),
            "miou": (inter / union.clamp(min=1)).mean().item(),
            "loss": self.loss / max(len(self.pred), 1),
        }


def poly_lr(it, total, power=0.9):
    return (1 - it / total) ** power


random.seed(0)
torch.manual_seed(0)
loader = DataLoader(RoadScenes(640), batch_size=8, shuffle=True, drop_last=True, num_workers=0)
model = fcn_resnet50(weights=None, weights_backbone=None, num_classes=NUM_CLASSES).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
epochs = 1
total = epochs * len(loader)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: poly_lr(it, total))
metrics = SegMetrics(NUM_CLASSES)

for epoch in range(epochs):
    model.train()
    metrics.reset()
    for it, (images, masks) in enumerate(loader):
        images, masks = images.to(device), masks.to(device)
        logits = model(images)["out"]
        loss = F.cross_entropy(logits, masks, ignore_index=255)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        metrics.update(logits, masks, loss)
        if it % 10 == 0:
            print(f"epoch {epoch} it {it}/{len(loader)} loss {loss.item():.4f}")
    print(epoch, metrics.compute())
