import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=128, width=64):
        super().__init__()
        stages, cin = [], 3
        for i, cout in enumerate((width, width * 2, width * 4, width * 8)):
            stages.append(nn.Sequential(
                nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
                nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU()))
            cin = cout
        self.stages = nn.Sequential(*stages)
        self.head = nn.Sequential(nn.Linear(cin, cin), nn.ReLU(), nn.Linear(cin, dim))

    def forward(self, x):
        x = self.stages(x).mean((2, 3))
        return F.normalize(self.head(x), dim=1)


class MoCo(nn.Module):
    def __init__(self, dim=128, size=16384, momentum=0.999, temperature=0.07):
        super().__init__()
        self.size, self.m, self.t = size, momentum, temperature
        self.encoder_q = Encoder(dim)
        self.encoder_k = copy.deepcopy(self.encoder_q)
        self.queue = F.normalize(torch.randn(size, dim, device="cuda"), dim=1)

    @torch.no_grad()
    def update_key_encoder(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.mul_(self.m).add_(q, alpha=1 - self.m)

    def enqueue(self, keys):
        self.queue = torch.cat([keys, self.queue])[: self.size]

    def forward(self, im_q, im_k):
        q = self.encoder_q(im_q)
        self.update_key_encoder()
        k = self.encoder_k(im_k)
        positives = (q * k.detach()).sum(1, keepdim=True)
        negatives = q @ self.queue.detach().t()
        logits = torch.cat([positives, negatives], 1) / self.t
        labels = torch.zeros(logits.size(0), dtype=torch.long, device=logits.device)
        self.enqueue(k)
        return F.cross_entropy(logits, labels)


def two_crops(batch, size):
    base = torch.randn(batch, 3, size, size, device="cuda")
    return base + 0.1 * torch.randn_like(base), base.flip(-1)


def train(batch=128, size=160, steps=500):
    model = MoCo().cuda()
    opt = torch.optim.SGD(model.encoder_q.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
    meter = 0.0
    for step in range(steps):
        im_q, im_k = two_crops(batch, size)
        loss = model(im_q, im_k)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter = 0.98 * meter + 0.02 * loss.item()
        if step % 2 == 0:
            print(f"step {step} loss {meter:.4f}", flush=True)


train()
