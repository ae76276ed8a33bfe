"""Single-stage detector; a background thread writes sample predictions for the dashboard."""
import argparse
import json
import queue
import tempfile
import threading

import torch
import torchvision
from torch import nn

device = 'cuda'


class Head(nn.Module):
    def __init__(self, channels, anchors=9, classes=80):
        super().__init__()
        tower = []
        for _ in range(3):
            tower += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
        self.tower = nn.Sequential(*tower)
        self.cls = nn.Conv2d(channels, anchors * classes, 3, padding=1)
        self.box = nn.Conv2d(channels, anchors * 4, 3, padding=1)

    def forward(self, x):
        x = self.tower(x)
        return self.cls(x), self.box(x)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        net = torchvision.models.resnet34(weights=None)
        self.backbone = nn.Sequential(*list(net.children())[:-3])
        self.head = Head(256)

    def forward(self, images):
        return self.head(self.backbone(images))


class DashboardWriter:
    """Collects what the dashboard shows and writes it away once there is enough for a page."""

    def __init__(self, path, page=256):
        self.path, self.page = path, page
        self.inbox = queue.Queue(maxsize=8)
        self.pages = []
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def put(self, step, cls, box):
        self.inbox.put((step, cls, box))

    def _drain(self):
        current = []
        while True:
            item = self.inbox.get()
            if item is None:
                break
            current.append(item)
            if len(current) == self.page:
                self.flush(current)
                current = []
        self.flush(current)

    def flush(self, items):
        with open(self.path, 'a') as f:
            for step, cls, box in items:
                f.write(json.dumps({'step': step, 'score': float(cls.sigmoid().amax()), 'box': float(box.mean())}) + '\n')

    def close(self):
        self.inbox.put(None)
        self.thread.join()


def focal(logits, target, gamma=2.0):
    ce = nn.functional.binary_cross_entropy_with_logits(logits, target, reduction='none')
    return (ce * (1 - torch.exp(-ce)) ** gamma).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--steps', type=int, default=70)
    ap.add_argument('--size', type=int, default=512)
    ap.add_argument('--batch', type=int, default=8)
    args = ap.parse_args()
    model = Detector().to(device).train()
    opt = torch.optim.SGD(model.parameters(), 0.005, momentum=0.9)
    writer = DashboardWriter(tempfile.mktemp(suffix='.jsonl'))
    for step in range(args.steps):
        images = torch.zeros(args.batch, 3, args.size, args.size).to(device)
        cls, box = model(images)
        loss = focal(cls, torch.zeros_like(cls)) + box.abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        writer.put(step, cls.detach(), box.detach())
        if step % 15 == 0:
            print(step, loss.item())
    writer.close()


if __name__ == '__main__':
    main()
