#!/usr/bin/env python
"""WGAN-GP on 64x64 crops."""
import torch
from torch import nn, autograd

LAMBDA = 10
CRITIC_ITERS = 5


class ResBlock(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.a = nn.Conv2d(ch, ch, 3, padding=1)
        self.b = nn.Conv2d(ch, ch, 3, padding=1)

    def forward(self, x):
        h = self.a(torch.nn.functional.softplus(x))
        return x + self.b(torch.nn.functional.softplus(h))


class Critic(nn.Module):
    def __init__(self, ch=64):
        super().__init__()
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.blocks = nn.Sequential(ResBlock(ch), nn.AvgPool2d(2), ResBlock(ch), nn.AvgPool2d(2), ResBlock(ch))
        self.fc = nn.Linear(ch * 16 * 16, 1)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).flatten(1)).squeeze(1)


class Gen(nn.Module):
    def __init__(self, z=128, ch=64):
        super().__init__()
        self.fc = nn.Linear(z, ch * 16 * 16)
        self.ch = ch
        self.net = nn.Sequential(ResBlock(ch), nn.Upsample(scale_factor=2), ResBlock(ch),
                                 nn.Upsample(scale_factor=2), nn.Conv2d(ch, 3, 3, padding=1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).view(-1, self.ch, 16, 16))


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mix)
    grads, = autograd.grad(score.sum(), mix, create_graph=True)
    return ((grads.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


def train(n_iter=10, bs=64, device="cuda"):
    critic, gen = Critic().to(device), Gen().to(device)
    oc = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))
    og = torch.optim.Adam(gen.parameters(), 1e-4, betas=(0.0, 0.9))
    epoch_gp = 0
    for it in range(n_iter):
        for _ in range(CRITIC_ITERS):
            real = torch.rand(bs, 3, 64, 64).to(device)
            with torch.no_grad():
                fake = gen(torch.randn(bs, 128, device=device))
            gp = gradient_penalty(critic, real, fake)
            w = critic(fake).mean() - critic(real).mean()
            oc.zero_grad()
            w.backward(retain_graph=True)
            (LAMBDA * gp).backward(retain_graph=True)
            oc.step()
            epoch_gp = epoch_gp + gp
        og.zero_grad()
        g_loss = -critic(gen(torch.randn(bs, 128, device=device))).mean()
        g_loss.backward()
        og.step()
        if it % 2 == 0:
            print(it, "w", float(w), "g", float(g_loss))
    print("mean penalty", float(epoch_gp) / (n_iter * CRITIC_ITERS))


if __name__ == "__main__":
    train()
