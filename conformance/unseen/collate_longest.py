"""Document classifier. Batches are padded to their longest document."""
import random
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, DataLoader


class Docs(Dataset):
    def __init__(self, n=600, seed=11):
        rng = random.Random(seed)
        # most are short, a handful of scraped pdfs is huge
        self.lengths = [rng.randint(80, 300) for _ in range(n)]
        for i in (333, 471, 512):
            self.lengths[i] = rng.randint(2500, 2800)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return torch.randint(1, 30000, (self.lengths[i],)), i % 8


def collate(batch):
    ids, labels = zip(*batch)
    ids = pad_sequence(ids, batch_first=True)
    return ids, torch.tensor(labels)


class SelfAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.qkv, self.out = h, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, pad):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, D // self.h).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (D // self.h) ** 0.5
        scores = scores.masked_fill(pad[:, None, None, :], -1e9).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(B, T, D))


class DocNet(nn.Module):
    def __init__(self, d=256, h=8, n=4):
        super().__init__()
        self.emb = nn.Embedding(30000, d, padding_idx=0)
        self.attn = nn.ModuleList(SelfAttention(d, h) for _ in range(n))
        self.norm = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.cls = nn.Linear(d, 8)

    def forward(self, ids):
        pad = ids == 0
        x = self.emb(ids)
        for a, n in zip(self.attn, self.norm):
            x = n(x + a(x, pad))
        return self.cls(x.mean(1))


def main():
    loader = DataLoader(Docs(), batch_size=16, collate_fn=collate)
    net = DocNet().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    for epoch in range(1):
        for step, (ids, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(net(ids.cuda()), labels.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(epoch, step, tuple(ids.shape), loss.item())


if __name__ == "__main__":
    main()
