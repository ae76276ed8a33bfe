"""Train a small latent diffusion denoiser with EMA; the text encoder comes from a pretrained model."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

from note import note, size_of

device = torch.device("cuda")
cfg = dict(text_dim=2048, text_layers=32, latent=64, hidden=256, batch=8, steps=12, ema=0.999, lr=1e-4)


class TextEncoder(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.tok = nn.Embedding(8192, dim, device=device)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim, device=device), nn.Linear(dim, 2 * dim, device=device), nn.GELU(),
                          nn.Linear(2 * dim, dim, device=device))
            for _ in range(layers))

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = x + layer(x)
        return x.mean(1)


class Denoiser(nn.Module):
    def __init__(self, text_dim, hidden):
        super().__init__()
        self.inp = nn.Conv2d(4, hidden, 3, padding=1)
        self.mid = nn.ModuleList(nn.Conv2d(hidden, hidden, 3, padding=1) for _ in range(4))
        self.cond = nn.Linear(text_dim, hidden)
        self.time = nn.Embedding(1000, hidden)
        self.out = nn.Conv2d(hidden, 4, 3, padding=1)

    def forward(self, z, t, c):
        h = self.inp(z) + (self.cond(c) + self.time(t))[:, :, None, None]
        for m in self.mid:
            h = h + F.silu(m(h))
        return self.out(h)


text_encoder = TextEncoder(cfg["text_dim"], cfg["text_layers"])
text_encoder.eval()
unet = Denoiser(cfg["text_dim"], cfg["hidden"]).to(device)
ema_unet = copy.deepcopy(unet).requires_grad_(False)
optimizer = torch.optim.AdamW(unet.parameters(), lr=cfg["lr"])
alphas = torch.linspace(0.999, 0.01, 1000, device=device)

for step in range(cfg["steps"]):
    # low resolution first, then the full one
    side, batch = (32, cfg["batch"]) if step < 8 else (64, 4 * cfg["batch"])
    ids = torch.randint(0, 8192, (batch, 16)).to(device)
    z = torch.randn(batch, 4, side, side, device=device)
    t = torch.randint(0, 1000, (batch,)).to(device)
    cond = text_encoder(ids)
    noise = torch.randn_like(z)
    a = alphas[t][:, None, None, None]
    pred = unet(a.sqrt() * z + (1 - a).sqrt() * noise, t, cond)
    loss = F.mse_loss(pred, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for e, p in zip(ema_unet.parameters(), unet.parameters()):
            e.mul_(cfg["ema"]).add_(p, alpha=1 - cfg["ema"])
    note(size_of([p.grad for p in text_encoder.parameters()]))
    print("step", step)
