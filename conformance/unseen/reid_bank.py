"""Person re-identification with a per-identity memory bank (centroid loss)."""
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bank:
    """last features of each identity"""

    def __init__(self, n_ids, keep=64):
        self.keep = keep
        self.feats = {i: [] for i in range(n_ids)}

    def add(self, labels, feats):
        for l, f in zip(labels.tolist(), feats):
            self.feats[l].append(f)
            if len(self.feats[l]) > self.keep:
                self.feats[l].pop(0)

    def centroid(self, label, like):
        if not self.feats[label]:
            return torch.zeros_like(like)
        return torch.stack([f.detach() for f in self.feats[label]]).mean(0)


def conv_bn(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Extractor(nn.Module):
    def __init__(self, dim=256):
        super().__init__()
        self.body = nn.Sequential(conv_bn(3, 32, 2), conv_bn(32, 64), conv_bn(64, 128, 2), conv_bn(128, 128),
                                  nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(128, dim)

    def forward(self, x):
        return F.normalize(self.fc(self.body(x)), dim=1)


def pk_batch(n_ids, p=16, k=4):
    ids = random.sample(range(n_ids), p)
    labels = torch.tensor([i for i in ids for _ in range(k)])
    return torch.rand(p * k, 3, 256, 128), labels


def main():
    random.seed(0)
    n_ids = 200
    net, bank = Extractor().cuda(), Bank(n_ids)
    head = nn.Linear(256, n_ids).cuda()
    opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=3.5e-4)
    for it in range(50):
        imgs, labels = pk_batch(n_ids)
        feats = net(imgs.cuda())
        id_loss = F.cross_entropy(head(feats), labels.cuda())
        opt.zero_grad()
        id_loss.backward()
        opt.step()
        # second view of the same people, only for the bank
        view2 = net(torch.flip(imgs, [3]).cuda())
        bank.add(labels, view2)
        if it % 10 == 0:
            c = bank.centroid(labels[0].item(), view2[0])
            print(f"it {it} id loss {id_loss.item():.3f} pull {(c - view2[0].detach()).norm().item():.3f}")


if __name__ == "__main__":
    main()
