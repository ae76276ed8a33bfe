"""Progressive resizing for a denoising U-Net: every resolution is a stage with its own schedule."""
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
import torch.nn.functional as F


class Conv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(8, o), nn.SiLU())


class UNet(nn.Module):
    def __init__(self, widths=(96, 192, 384, 768)):
        super().__init__()
        self.inp = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(nn.Sequential(Conv(a, b), Conv(b, b)) for a, b in zip(widths, widths[1:]))
        self.mid = nn.Sequential(Conv(widths[-1], widths[-1]), Conv(widths[-1], widths[-1]))
        rev = widths[::-1]
        self.up = nn.ModuleList(nn.Sequential(Conv(a + a, b), Conv(b, b)) for a, b in zip(rev, rev[1:]))
        self.out = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        x = self.inp(x)
        skips = []
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.mid(x)
        for block in self.up:
            skip = skips.pop()
            x = block(torch.cat([F.interpolate(x, size=skip.shape[-2:]), skip], 1))
        return self.out(x)


@dataclass
class Stage:
    resolution: int
    batch: int
    steps: int
    optimizer: Any = None
    schedule: Any = None
    loss: float = float("nan")


class ProgressiveTrainer:
    plan = [(16, 32), (24, 24), (32, 16), (40, 12), (48, 8), (56, 6), (64, 4), (72, 4), (80, 2), (88, 2), (96, 2)]

    def __init__(self, net, lr=2e-4, steps=6):
        self.net, self.lr = net, lr
        self.stages = [Stage(r, b, steps) for r, b in self.plan]

    def begin(self, stage):
        decay = [p for p in self.net.parameters() if p.ndim > 1]
        plain = [p for p in self.net.parameters() if p.ndim <= 1]
        stage.optimizer = torch.optim.AdamW([{"params": decay}, {"params": plain, "weight_decay": 0.0}], self.lr, fused=True)
        stage.schedule = torch.optim.lr_scheduler.OneCycleLR(stage.optimizer, self.lr, total_steps=stage.steps + 1)

    def run_stage(self, stage):
        self.begin(stage)
        total = 0.0
        for _ in range(stage.steps):
            clean = torch.rand(stage.batch, 3, stage.resolution, stage.resolution, device="cuda")
            noisy = clean + 0.1 * torch.randn_like(clean)
            loss = F.l1_loss(self.net(noisy), clean)
            stage.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            stage.optimizer.step()
            stage.schedule.step()
            total += loss.item()
        stage.loss = total / stage.steps

    def run(self):
        for stage in self.stages:
            self.run_stage(stage)
            print(f"{stage.resolution:>4}px  l1 {stage.loss:.4f}  lr {stage.schedule.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    torch.manual_seed(1)
    trainer = ProgressiveTrainer(UNet().cuda())
    trainer.run()
    print("best stage", min(trainer.stages, key=lambda s: s.loss).resolution)
