"""MoCo v2 with a queue of 16384 keys."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet18
from torchvision.transforms import v2


class TwoViews(Dataset):
    def __init__(self, n=512):
        self.n = n
        self.aug = v2.Compose([v2.RandomResizedCrop(112, (0.3, 1.0), antialias=True), v2.RandomHorizontalFlip(),
                               v2.ColorJitter(0.4, 0.4, 0.4)])

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        img = torch.rand(3, 128, 128, generator=torch.Generator().manual_seed(i))
        return self.aug(img), self.aug(img)


class MoCo(nn.Module):
    def __init__(self, dim=128, size=16384, momentum=0.999, temperature=0.2):
        super().__init__()
        self.m, self.t = momentum, temperature
        self.encoder = resnet18(weights=None, num_classes=dim)
        self.encoder.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))
        self.key_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.ptr = 0

    @torch.no_grad()
    def update_keys(self):
        for q, k in zip(self.encoder.parameters(), self.key_encoder.parameters()):
            k.lerp_(q, 1 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        n = len(keys)
        self.queue[:, self.ptr:self.ptr + n] = keys.T
        self.ptr = (self.ptr + n) % self.queue.shape[1]

    def forward(self, a, b):
        q = F.normalize(self.encoder(a), dim=1)
        with torch.no_grad():
            self.update_keys()
            k = F.normalize(self.key_encoder(b), dim=1)
        pos = (q * k).sum(1, keepdim=True)
        neg = q @ self.queue.clone()
        logits = torch.cat([pos, neg], 1) / self.t
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


def main():
    torch.manual_seed(0)
    loader = DataLoader(TwoViews(), batch_size=64, shuffle=True, drop_last=True)
    model = MoCo().cuda()
    opt = torch.optim.SGD(model.encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    for epoch in range(2):
        total = 0.0
        for a, b in loader:
            loss = model(a.cuda(), b.cuda())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
