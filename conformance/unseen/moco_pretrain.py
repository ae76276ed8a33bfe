# MoCo v1 style pretraining, single gpu
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=4096):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU(),
            nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(128, 256, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.fc = nn.Linear(256, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.conv(x).flatten(1)), dim=1)


class MoCo(nn.Module):
    def __init__(self, dim=4096, K=65536, m=0.999, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = Encoder(dim), Encoder(dim)
        for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            pk.data.copy_(pq.data)
            pk.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(K, dim, device="cuda"), dim=1))

    @torch.no_grad()
    def _momentum_update(self):
        for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            pk.data = pk.data * self.m + pq.data * (1.0 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        self.queue = torch.cat([self.queue, keys], dim=0)
        # later: ptr arithmetic like in the paper's code

    def forward(self, im_q, im_k):
        q = self.encoder_q(im_q)
        with torch.no_grad():
            self._momentum_update()
            k = self.encoder_k(im_k)
        l_pos = (q * k).sum(1, keepdim=True)
        l_neg = q @ self.queue.t()
        logits = torch.cat([l_pos, l_neg], 1) / self.T
        labels = torch.zeros(logits.size(0), dtype=torch.long, device=logits.device)
        self._enqueue(k)
        return logits, labels


def main():
    model = MoCo().cuda()
    opt = torch.optim.SGD(model.encoder_q.parameters(), 0.03, momentum=0.9)
    bs = 2048
    for epoch in range(1):
        for i in range(180):
            base = torch.rand(bs, 3, 32, 32, device="cuda")
            logits, labels = model(base + 0.05 * torch.randn_like(base), torch.flip(base, [3]))
            loss = F.cross_entropy(logits, labels)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if i % 50 == 0:
                print(f"Epoch [{epoch}][{i}/180] Loss {loss.item():.3f} queue {model.queue.size(0)}")


if __name__ == "__main__":
    main()
