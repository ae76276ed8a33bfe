"""Recipe photo <-> text retrieval. Two towers, symmetric InfoNCE, recall@k after each epoch."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18


class TextTower(nn.Module):
    def __init__(self, vocab=12000, dim=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(dim, 8, 2048, 0.1, batch_first=True), 4,
                                         enable_nested_tensor=False)
        self.proj = nn.Linear(dim, 1024)

    def forward(self, ids):
        return F.normalize(self.proj(self.enc(self.emb(ids))), dim=-1)     # one vector per ingredient


class PhotoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = resnet18(weights=None)
        self.net.fc = nn.Identity()
        self.proj = nn.Linear(512, 1024)

    def forward(self, x):
        return F.normalize(self.proj(self.net(x)), dim=-1)


class LateInteractionRecall:
    """Recall@k where a text is scored by its best ingredient, over all pairs of the split."""

    def __init__(self, ks=(1, 5, 10)):
        self.ks = ks
        self.state = {"photo": [], "text": []}

    def update(self, photo, text):
        self.state["photo"].append(photo)
        self.state["text"].append(text)

    def compute(self):
        photo = torch.cat(self.state["photo"]).cpu()
        hits = {k: 0 for k in self.ks}
        for start, block in enumerate(self.state["text"]):
            sim = torch.einsum("pd,tld->ptl", photo[:8], block[:8].cpu()).amax(-1)
            for k in self.ks:
                hits[k] += int((sim.topk(min(k, sim.size(1)), 1).indices == 0).sum())
        return {f"recall@{k}": v / max(1, len(photo)) for k, v in hits.items()}

    def reset(self):
        self.state = {"photo": [], "text": []}


def data(n, seed):
    g = torch.Generator().manual_seed(seed)
    photos = torch.rand(n, 3, 32, 32, generator=g)
    return TensorDataset(photos, torch.randint(0, 12000, (n, 64), generator=g))


@torch.inference_mode()
def validate(photo, text, loader, metric, device):
    photo.eval(), text.eval()
    for images, ids in loader:
        images = F.interpolate(images.to(device), size=128)
        metric.update(photo(images), text(ids.to(device)))
    result = metric.compute()
    photo.train(), text.train()
    return result


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--batch", type=int, default=128)
    a = ap.parse_args()
    device = "cuda"
    train = DataLoader(data(768, 0), a.batch, shuffle=True)
    valid = DataLoader(data(2560, 1), 256)
    photo, text = PhotoTower().to(device), TextTower().to(device)
    scale = nn.Parameter(torch.tensor(math.log(14.0), device=device))
    opt = torch.optim.AdamW([*photo.parameters(), *text.parameters(), scale], 1e-4)
    metric = LateInteractionRecall()
    best = -1.0
    for epoch in range(a.epochs):
        for images, ids in train:
            images = F.interpolate(images.to(device), size=128)
            sim = scale.exp() * photo(images) @ text(ids.to(device)).mean(1).T
            target = torch.arange(len(sim), device=device)
            loss = (F.cross_entropy(sim, target) + F.cross_entropy(sim.T, target)) / 2
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        result = validate(photo, text, valid, metric, device)
        best = max(best, result["recall@5"])
        print(f"epoch {epoch}: {result} best {best:.3f}", flush=True)


main()
