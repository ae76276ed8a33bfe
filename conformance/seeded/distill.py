"""Distil a wide tabular teacher into a small student."""
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class Distiller:
    def __init__(self, teacher, student, temperature, mix):
        self.teacher = teacher.eval()
        self.student = student
        self.temperature, self.mix = temperature, mix
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 40)

    def soft_loss(self, mine, theirs):
        t = self.temperature
        return F.kl_div(F.log_softmax(mine / t, -1), F.log_softmax(theirs / t, -1),
                        log_target=True, reduction="batchmean") * t * t

    def step(self, rows, labels):
        mine = self.student(rows)
        theirs = self.teacher(rows)
        loss = self.mix * self.soft_loss(mine, theirs) + (1 - self.mix) * F.cross_entropy(mine, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.student.parameters(), 5.0)
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=512)
    options = parser.parse_args()

    with torch.device("cuda"):
        teacher = mlp([512] + [options.width] * options.depth + [200])
        student = mlp([512, 1024, 1024, 200])
    teacher_size = sum(p.numel() for p in teacher.parameters())
    print(f"teacher: {teacher_size / 1e6:.0f} M weights")

    distiller = Distiller(teacher, student, temperature=3.0, mix=0.8)
    for step in range(options.steps):
        rows = torch.randn(options.batch, 512, device="cuda")
        labels = torch.randint(0, 200, (options.batch,), device="cuda")
        loss = distiller.step(rows, labels)
        if step % 2 == 0:
            print(step, round(loss, 4))
    torch.save(student.state_dict(), "/tmp/student.pt")


if __name__ == "__main__":
    main()
