"""DDPM on 32x32 images, with an exponential moving average of the weights for sampling."""
import copy
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

T = 1000
device = torch.device('cuda')


def embed_time(t, dim):
    freq = torch.exp(-math.log(10000) * torch.arange(dim // 2, device=t.device) / (dim // 2))
    a = t[:, None].float() * freq
    return torch.cat([a.sin(), a.cos()], 1)


class Res(nn.Module):
    def __init__(self, a, b, t):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(16, a), nn.Conv2d(a, b, 3, padding=1)
        self.t = nn.Linear(t, b)
        self.n2, self.c2 = nn.GroupNorm(16, b), nn.Conv2d(b, b, 3, padding=1)
        self.s = nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.c2(F.silu(self.n2(h))) + self.s(x)


class UNet(nn.Module):
    def __init__(self, w=96, t=256):
        super().__init__()
        self.t = nn.Sequential(nn.Linear(w, t), nn.SiLU(), nn.Linear(t, t))
        self.inp, self.w = nn.Conv2d(3, w, 3, padding=1), w
        self.d1, self.d2, self.d3 = Res(w, w, t), Res(w, 2 * w, t), Res(2 * w, 4 * w, t)
        self.mid = Res(4 * w, 4 * w, t)
        self.u3, self.u2, self.u1 = Res(8 * w, 2 * w, t), Res(4 * w, w, t), Res(2 * w, w, t)
        self.out = nn.Sequential(nn.GroupNorm(16, w), nn.SiLU(), nn.Conv2d(w, 3, 3, padding=1))

    def forward(self, x, t):
        t = self.t(embed_time(t, self.w))
        h1 = self.d1(self.inp(x), t)
        h2 = self.d2(F.avg_pool2d(h1, 2), t)
        h3 = self.d3(F.avg_pool2d(h2, 2), t)
        h = self.mid(h3, t)
        h = F.interpolate(self.u3(torch.cat([h, h3], 1), t), scale_factor=2)
        h = F.interpolate(self.u2(torch.cat([h, h2], 1), t), scale_factor=2)
        return self.out(self.u1(torch.cat([h, h1], 1), t))


@torch.no_grad()
def update_ema(ema, model, decay):
    for a, b in zip(ema.parameters(), model.parameters()):
        a.lerp_(b, 1 - decay)


@torch.inference_mode()
def ddim(model, n, alphas, steps=20):
    x = torch.randn(n, 3, 32, 32, device=device)
    times = torch.linspace(T - 1, 0, steps).long().tolist()
    for now, nxt in zip(times, times[1:] + [-1]):
        a = alphas[now]
        b = alphas[nxt] if nxt >= 0 else torch.ones((), device=device)
        eps = model(x, torch.full((n,), now, device=device))
        x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
        x = b.sqrt() * x0 + (1 - b).sqrt() * eps
    return x.cpu()


torch.manual_seed(0)
alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, T), 0).to(device)
model = UNet().to(device)
ema = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=2e-4)
scaler = torch.amp.GradScaler('cuda', enabled=False)
images = TensorDataset(torch.rand(4096, 3, 32, 32) * 2 - 1)
loader = DataLoader(images, batch_size=128, shuffle=True, drop_last=True)

log = []
for step, (x,) in enumerate(loader):
    x = x.to(device)
    t = torch.randint(0, T, (len(x),), device=device)
    noise = torch.randn_like(x)
    a = alphas[t].view(-1, 1, 1, 1)
    loss = F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    update_ema(ema, model, 0.999)
    log.append(loss.item())
samples = ddim(ema, 64, alphas)
print(len(log), 'steps, mean loss', sum(log) / len(log), samples.shape)
