"""Forecast road traffic from two weeks of sensor readings."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    sensors: int = 64
    history: int = 1024
    horizon: int = 96
    d_model: int = 256
    heads: int = 8
    layers: int = 4
    batch: int = 8
    steps: int = 20
    lr: float = 5e-4
    device: str = "cuda"


class SensorWindows(Dataset):
    def __init__(self, cfg, length=4000):
        t = torch.arange(length).float()
        g = torch.Generator().manual_seed(3)
        phase = torch.rand(cfg.sensors, generator=g) * 6.28
        self.series = torch.sin(t[:, None] / 46 + phase) + 0.1 * torch.randn(length, cfg.sensors, generator=g)
        self.cfg = cfg

    def __len__(self):
        return len(self.series) - self.cfg.history - self.cfg.horizon

    def __getitem__(self, i):
        mid = i + self.cfg.history
        return self.series[i:mid], self.series[mid:mid + self.cfg.horizon]


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn = nn.MultiheadAttention(cfg.d_model, cfg.heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(cfg.d_model, 4 * cfg.d_model), nn.GELU(),
                                nn.Linear(4 * cfg.d_model, cfg.d_model))
        self.norm1, self.norm2 = nn.LayerNorm(cfg.d_model), nn.LayerNorm(cfg.d_model)

    def forward(self, x):
        h = self.norm1(x)
        h, _ = self.attn(h, h, h)
        x = x + h
        return x + self.ff(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Linear(cfg.sensors, cfg.d_model)
        self.pos = nn.Parameter(torch.zeros(cfg.history, cfg.d_model))
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.d_model)
        self.out = nn.Linear(cfg.d_model, cfg.horizon * cfg.sensors)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        h = self.embed((x - mean) / std) + self.pos
        for layer in self.layers:
            h = layer(h)
        y = self.out(self.norm(h[:, -1])).view(-1, self.cfg.horizon, self.cfg.sensors)
        return y * std + mean


def main(cfg=Config()):
    torch.manual_seed(0)
    loader = DataLoader(SensorWindows(cfg), batch_size=cfg.batch, shuffle=True, drop_last=True)
    model = Forecaster(cfg).to(cfg.device)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, cfg.lr, total_steps=cfg.steps)
    for step, (past, future) in enumerate(loader):
        if step == cfg.steps:
            break
        past, future = past.to(cfg.device), future.to(cfg.device)
        loss = nn.functional.huber_loss(model(past), future)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        if step % 5 == 0:
            print(f"{step:3d} huber {loss.item():.4f} lr {sched.get_last_lr()[0]:.2e}")


main()
