"""Student training with retrieval from a bank of teacher features."""
import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from note import note


@dataclass
class DataBundle:
    name: str
    features: torch.Tensor
    labels: torch.Tensor

    def to(self, device):
        return DataBundle(self.name, self.features.to(device), self.labels.to(device))

    def batch(self, start, size, device):
        return self.features[start:start + size].to(device), self.labels[start:start + size].to(device)


def load(rows, dim):
    # stands for np.load(..., mmap_mode="r")
    return DataBundle("laion-subset", torch.empty(rows, dim), torch.zeros(rows, dtype=torch.long))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--rows", type=int, default=600_000)
    ap.add_argument("--dim", type=int, default=1536)
    ap.add_argument("--bs", type=int, default=16384)
    ap.add_argument("--device", default="cuda")
    args = ap.parse_args()

    bank = load(args.rows, args.dim).to(args.device)
    note(bank.features.nbytes)
    student = nn.Sequential(nn.Linear(args.dim, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 1000)).to(args.device)
    opt = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.05)
    for step in range(20):
        start = (step * args.bs) % (args.rows - args.bs)
        x, y = bank.batch(start, args.bs, args.device)
        loss = F.cross_entropy(student(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            print("step", step)


if __name__ == "__main__":
    main()
