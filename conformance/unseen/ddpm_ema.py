import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResBlock(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, cin), nn.GroupNorm(32, cout)
        self.conv1, self.conv2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(temb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, base=384, mult=(1, 2, 4, 4)):
        super().__init__()
        temb = base * 4
        self.base = base
        self.mlp = nn.Sequential(nn.Linear(base, temb), nn.SiLU(), nn.Linear(temb, temb))
        self.stem = nn.Conv2d(3, base, 3, padding=1)
        ch, self.down, skips = base, nn.ModuleList(), []
        for m in mult:
            self.down.append(ResBlock(ch, base * m, temb))
            ch = base * m
            skips.append(ch)
        self.mid = nn.ModuleList([ResBlock(ch, ch, temb) for _ in range(2)])
        self.up = nn.ModuleList()
        for m in reversed(mult):
            self.up.append(ResBlock(ch + skips.pop(), base * m, temb))
            ch = base * m
        self.head = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t):
        half = self.base // 2
        freq = torch.exp(-math.log(10000) * torch.arange(half, device=x.device) / half)
        angle = t[:, None].float() * freq[None]
        t = self.mlp(torch.cat([angle.sin(), angle.cos()], -1))
        h, skips = self.stem(x), []
        for blk in self.down:
            h = blk(h, t)
            skips.append(h)
            h = F.avg_pool2d(h, 2)
        for blk in self.mid:
            h = blk(h, t)
        for blk in self.up:
            h = F.interpolate(h, scale_factor=2)
            h = blk(torch.cat([h, skips.pop()], 1), t)
        return self.head(h)


class EMA:
    def __init__(self, model, decay=0.9999):
        self.decay = decay
        self.shadow = copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


class Trainer:
    def __init__(self, model, lr=1e-4):
        self.model = model
        self.ema = EMA(model)
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.betas = torch.linspace(1e-4, 0.02, 1000, device="cuda")
        self.alphas = torch.cumprod(1 - self.betas, 0)
        self.milestones = {}

    def loss(self, x):
        t = torch.randint(0, 1000, (x.size(0),), device=x.device)
        a = self.alphas[t][:, None, None, None]
        noise = torch.randn_like(x)
        return F.mse_loss(self.model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)

    def fit(self, epochs, steps, batch):
        for epoch in range(epochs):
            for _ in range(steps):
                x = torch.randn(batch, 3, 64, 64, device="cuda")
                loss = self.loss(x)
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.ema.update(self.model)
            self.milestones[epoch] = copy.deepcopy(self.ema.shadow).eval()
            print("epoch", epoch, "loss", loss.item(), flush=True)


if __name__ == "__main__":
    torch.manual_seed(1)
    with torch.device("cuda"):
        net = UNet()
    print(f"{sum(p.numel() for p in net.parameters()) / 1e6:.1f} M parameters")
    Trainer(net).fit(epochs=100, steps=2, batch=20)
