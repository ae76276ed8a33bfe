"""Hinge GAN with spectral normalization; a grid of samples from fixed noise after each epoch, in host memory."""
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

device = 'cuda'
torch.manual_seed(3)


def up(cin, cout):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


class Generator(nn.Module):
    def __init__(self, z=128, c=512):
        super().__init__()
        self.c = c
        self.fc = nn.Linear(z, c * 16)
        self.net = nn.Sequential(up(c, c // 2), up(c // 2, c // 4), up(c // 4, c // 8), nn.Conv2d(c // 8, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).view(-1, self.c, 4, 4))


class Critic(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        layers, cin = [], 3
        for cout in (c, 2 * c, 4 * c):
            layers += [spectral_norm(nn.Conv2d(cin, cout, 4, 2, 1)), nn.LeakyReLU(0.1)]
            cin = cout
        self.net = nn.Sequential(*layers, nn.Flatten(), spectral_norm(nn.Linear(cin * 16, 1)))

    def forward(self, x):
        return self.net(x)


class Curves(dict):
    def add(self, **values):
        for key, value in values.items():
            self.setdefault(key, []).append(value)


gen, critic = Generator().to(device), Critic().to(device)
opt_g = torch.optim.Adam(gen.parameters(), 2e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.0, 0.9))
fixed = torch.randn(64, 128, device=device)
curves, grids = Curves(), []
images = torch.randn(512, 3, 32, 32).clamp(-1, 1)
for epoch in range(3):
    for real in images[torch.randperm(512)].split(64):
        real = real.to(device)
        with torch.no_grad():
            fake = gen(torch.randn(len(real), 128, device=device))
        loss_c = (1 - critic(real)).relu().mean() + (1 + critic(fake)).relu().mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

        critic.requires_grad_(False)
        loss_g = -critic(gen(torch.randn(len(real), 128, device=device))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        critic.requires_grad_(True)
        curves.add(critic=loss_c.item(), generator=loss_g.item())
    gen.eval()
    with torch.no_grad():
        grids.append(gen(fixed).cpu())
    gen.train()
    print(epoch, curves['critic'][-1], curves['generator'][-1], len(grids))
