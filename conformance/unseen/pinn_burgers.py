"""Burgers' equation by a physics-informed network."""
import math

import torch
import torch.nn as nn

NU = 0.01 / math.pi


class MLP(nn.Module):
    def __init__(self, width=256, depth=6):
        super().__init__()
        sizes = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, xt):
        h = xt
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.out(h)


def gradient(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def burgers(net, xt):
    u = net(xt)
    du = gradient(u, xt)
    u_x, u_t = du[:, :1], du[:, 1:]
    u_xx = gradient(u_x, xt)[:, :1]
    return u_t + u * u_x - NU * u_xx


def collocation(n, device):
    xt = torch.rand(n, 2, device=device)
    xt[:, 0].mul_(2).sub_(1)
    return xt.requires_grad_(True)


def boundary(n, device):
    x = torch.linspace(-1, 1, n, device=device)[:, None]
    xt = torch.cat([x, torch.zeros_like(x)], 1)
    return xt, -torch.sin(math.pi * x)


def solve(steps=600, points=24_000, probes=40_000, probe_every=2):
    device = torch.device("cuda")
    net = MLP().to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    plan = torch.optim.lr_scheduler.StepLR(optimizer, 200, 0.5)
    xt_b, u_b = boundary(4096, device)
    residual_curve = []
    for step in range(steps):
        optimizer.zero_grad()
        interior = burgers(net, collocation(points, device)).square().mean()
        edge = nn.functional.mse_loss(net(xt_b), u_b)
        loss = interior + 10 * edge
        loss.backward()
        optimizer.step()
        plan.step()

        if step % probe_every == 0:
            check = burgers(net, collocation(probes, device))
            residual_curve.append((step, check.abs().max()))
            print(f"step {step} loss {loss.item():.4e}", flush=True)

    for step, worst in residual_curve:
        print(step, float(worst))
    return net


solve()
