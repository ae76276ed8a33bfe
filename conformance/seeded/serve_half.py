import os
import pathlib
import tempfile

import torch
from torch import nn
import torch.nn.functional as F


class MixerBlock(nn.Module):
    def __init__(self, tokens, d):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.tok = nn.Sequential(nn.Linear(tokens, 384), nn.GELU(), nn.Linear(384, tokens))
        self.chan = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.chan(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, d=1280, depth=18, patch=16, size=224, classes=5000):
        super().__init__()
        self.stem = nn.Conv2d(3, d, patch, patch)
        self.blocks = nn.Sequential(*[MixerBlock((size // patch) ** 2, d) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes)

    def forward(self, image):
        x = self.stem(image).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


def export(path):
    """What the training job leaves behind: single precision, with some metadata."""
    with torch.device("cuda"):
        trained = Mixer()
    torch.save({"weights": trained.state_dict(), "epoch": 299, "classes": 5000}, path)


class Classifier:
    def __init__(self, path, batch=80):
        payload = torch.load(path, map_location="cuda", weights_only=True)
        self.net = Mixer(classes=payload["classes"]).half().eval().cuda()
        self.net.load_state_dict(payload["weights"])
        self.epoch = payload["epoch"]
        self.batch = batch
        self.payload = payload

    def describe(self):
        shapes = {tuple(t.shape) for t in self.net.state_dict().values()}
        return f"epoch {self.epoch}, {len(shapes)} shapes, {sum(p.numel() for p in self.net.parameters()) / 1e6:.0f} M"

    @torch.inference_mode()
    def top(self, images, k=5):
        found = []
        for part in images.split(self.batch):
            part = part.cuda(non_blocking=True)
            scores = F.softmax(self.net(part).float(), -1)
            found.append(scores.topk(k).indices.cpu())
        return torch.cat(found)


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    path = folder / "mixer.pt"
    export(path)
    torch.cuda.empty_cache()
    try:
        clf = Classifier(path, batch=80)
        print(clf.describe())
        for _ in range(3):
            images = torch.zeros(160, 3, 224, 224, dtype=torch.half)
            print(clf.top(images).shape)
    finally:
        os.unlink(path)
        folder.rmdir()


if __name__ == "__main__":
    main()
