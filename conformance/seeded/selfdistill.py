import copy
import math
import torch
from torch import nn
import torch.nn.functional as F


class Patchify(nn.Module):
    def __init__(self, d, patch=16):
        super().__init__()
        self.conv = nn.Conv2d(3, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(len(x), -1, -1), x], 1)


class ViT(nn.Module):
    def __init__(self, d=256, depth=6, heads=4):
        super().__init__()
        self.patch = Patchify(d)
        layer = lambda: nn.TransformerEncoderLayer(d, heads, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.ModuleList(layer() for _ in range(depth))
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        x = self.patch(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x[:, 0])


class Projector(nn.Sequential):
    def __init__(self, d=256, hidden=1024, out=8192):
        super().__init__(nn.Linear(d, hidden), nn.GELU(), nn.Linear(hidden, 256), nn.Linear(256, out, bias=False))


class SelfDistillLoss(nn.Module):
    def __init__(self, out=8192, teacher_temp=0.04, student_temp=0.1, momentum=0.9):
        super().__init__()
        self.tt, self.ts, self.m = teacher_temp, student_temp, momentum
        self.register_buffer("center", torch.zeros(1, out))

    def forward(self, student, teacher, crops):
        s = (student / self.ts).chunk(crops)
        t = F.softmax((teacher - self.center) / self.tt, -1).detach().chunk(2)
        total, terms = 0, 0
        for i, target in enumerate(t):
            for j, guess in enumerate(s):
                if i == j:
                    continue
                total = total - (target * F.log_softmax(guess, -1)).sum(-1).mean()
                terms += 1
        self.update_center(teacher)
        return total / terms

    def update_center(self, teacher):
        self.center = self.center * self.m + teacher.mean(0, keepdim=True) * (1 - self.m)


@torch.no_grad()
def momentum_update(teacher, student, m):
    for a, b in zip(teacher.parameters(), student.parameters()):
        a.mul_(m).add_(b, alpha=1 - m)


def augment(images, crops):
    views = []
    for c in range(crops):
        flip = images.flip(-1) if c % 2 else images
        views.append(flip + 0.05 * torch.randn_like(flip))
    return views


def main(steps=40, batch=32, crops=3):
    student = nn.Sequential(ViT(), Projector()).cuda()
    teacher = copy.deepcopy(student)
    criterion = SelfDistillLoss().cuda()
    optim = torch.optim.AdamW(student.parameters(), 5e-4, weight_decay=0.04, fused=True)
    for step in range(steps):
        m = 1 - (1 - 0.996) * (math.cos(math.pi * step / steps) + 1) / 2
        images = torch.rand(batch, 3, 160, 160, device="cuda")
        views = augment(images, crops)
        teacher_out = teacher(torch.cat(views[:2]))
        student_out = student(torch.cat(views))
        loss = criterion(student_out, teacher_out, crops)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 3.0)
        optim.step()
        momentum_update(teacher, student, m)
        if step % 10 == 9:
            print(f"{step + 1:>4} loss {loss.item():.4f} m {m:.5f}")


if __name__ == "__main__":
    main()
