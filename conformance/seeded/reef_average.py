"""Coral segmentation with a running average of the weights, kept on the host; checks both after each epoch."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models.segmentation import lraspp_mobilenet_v3_large

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch", type=int, default=12)
parser.add_argument("--keep", type=int, default=3)
args = parser.parse_args()
device = "cuda"
torch.manual_seed(0)


class Reef(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.n, self.images = n, torch.rand(10, 3, 256, 256, generator=g)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = self.images[i % 10]
        return image, (image[0] * 9).long()


class HostAverage:
    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.weights = {k: v.detach().to("cpu", copy=True) for k, v in model.state_dict().items()}
        self.aside = None

    @torch.no_grad()
    def update(self, model):
        for k, v in model.state_dict().items():
            if v.is_floating_point():
                self.weights[k].lerp_(v.cpu(), 1 - self.decay)
            else:
                self.weights[k].copy_(v)

    def __enter__(self):
        self.aside = {k: v.cpu() for k, v in model.state_dict().items()}
        model.load_state_dict(self.weights)

    def __exit__(self, *exc):
        model.load_state_dict(self.aside)
        self.aside = None


@torch.inference_mode()
def check(loader):
    model.eval()
    overlap = torch.zeros(2, 9)
    pictures = []
    for image, mask in loader:
        said = model(image.to(device))["out"].argmax(1).cpu()
        for c in range(9):
            overlap[0, c] += ((said == c) & (mask == c)).sum()
            overlap[1, c] += ((said == c) | (mask == c)).sum()
        pictures.append(said.to(torch.uint8))
    model.train()
    return (overlap[0] / overlap[1].clamp(min=1)).mean().item(), torch.cat(pictures)


model = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=9).to(device)
average = HostAverage(model)
optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, foreach=False)
train, valid = DataLoader(Reef(180, 0), args.batch, shuffle=True), DataLoader(Reef(96, 1), args.batch)
best = []
for epoch in range(args.epochs):
    losses = []
    for step, (image, mask) in enumerate(train):
        loss = F.cross_entropy(model(image.to(device))["out"], mask.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step % 5 == 4:
            average.update(model)
    plain, _ = check(valid)
    with average:
        smooth, pictures = check(valid)
        best.append((smooth, {k: v.cpu() for k, v in model.state_dict().items()}))
    best = sorted(best, key=lambda b: -b[0])[: args.keep]
    print(f"epoch {epoch} loss {torch.stack(losses).mean().item():.4f} iou {plain:.3f} averaged {smooth:.3f}", tuple(pictures.shape))
