# GAN vocoder: mel spectrogram to waveform
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm as wn

torch.manual_seed(5)
device = 'cuda'
BATCH, FRAMES, HOP, STEPS = 16, 32, 256, 20


class MRF(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.convs = nn.ModuleList(wn(nn.Conv1d(c, c, 3, padding=d, dilation=d)) for d in (1, 3, 5))

    def forward(self, x):
        for c in self.convs:
            x = x + c(F.leaky_relu(x, 0.1))
        return x


class Generator(nn.Module):
    def __init__(self, c=512):
        super().__init__()
        self.pre = wn(nn.Conv1d(80, c, 7, padding=3))
        self.ups, self.res = nn.ModuleList(), nn.ModuleList()
        for r in (8, 8, 2, 2):
            self.ups.append(wn(nn.ConvTranspose1d(c, c // 2, 2 * r, r, padding=r // 2)))
            c //= 2
            self.res.append(MRF(c))
        self.post = wn(nn.Conv1d(c, 1, 7, padding=3))

    def forward(self, mel):
        x = self.pre(mel)
        for up, res in zip(self.ups, self.res):
            x = res(up(F.leaky_relu(x, 0.1)))
        return torch.tanh(self.post(F.leaky_relu(x)))


class PeriodD(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        c = [1, 32, 128, 512, 1024]
        self.convs = nn.ModuleList(wn(nn.Conv2d(a, b, (5, 1), (3, 1), padding=(2, 0))) for a, b in zip(c, c[1:]))
        self.post = wn(nn.Conv2d(1024, 1, (3, 1), padding=(1, 0)))

    def forward(self, x):
        x = F.pad(x, (0, -x.size(-1) % self.period))
        x = x.view(x.size(0), 1, -1, self.period)
        feats = []
        for c in self.convs:
            x = F.leaky_relu(c(x), 0.1)
            feats.append(x)
        return self.post(x).flatten(1), feats


gen = Generator().to(device)
discs = nn.ModuleList(PeriodD(p) for p in (2, 3, 5, 7, 11)).to(device)
opt_g = torch.optim.AdamW(gen.parameters(), 2e-4, betas=(0.8, 0.99))
opt_d = torch.optim.AdamW(discs.parameters(), 2e-4, betas=(0.8, 0.99))
fixed_mel = torch.randn(1, 80, 128, device=device)
previews = []

for step in range(STEPS):
    mel = torch.randn(BATCH, 80, FRAMES).to(device)
    real = torch.rand(BATCH, 1, FRAMES * HOP).mul(2).sub(1).to(device)
    fake = gen(mel)

    d_loss = 0.0
    opt_d.zero_grad()
    for d in discs:
        r, _ = d(real)
        f, _ = d(fake.detach())
        loss = ((1 - r) ** 2).mean() + (f ** 2).mean()
        loss.backward()
        d_loss += loss.item()
    opt_d.step()

    opt_g.zero_grad()
    discs.requires_grad_(False)
    g_loss = 45 * F.l1_loss(fake, real)
    for d in discs:
        f, feats = d(fake)
        with torch.no_grad():
            _, wanted = d(real)
        g_loss = g_loss + ((1 - f) ** 2).mean() + 2 * sum(F.l1_loss(a, b) for a, b in zip(feats, wanted))
    g_loss.backward()
    discs.requires_grad_(True)
    opt_g.step()

    if step % 10 == 9:
        with torch.no_grad():
            previews.append(gen(fixed_mel).squeeze().cpu())
        print(f'{step + 1}: d {d_loss:.3f} g {g_loss.item():.3f}')

torch.save(previews, '/tmp/hifi_previews.pt')
