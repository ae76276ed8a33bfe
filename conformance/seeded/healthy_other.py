"""Graphs, recommenders, control, and accelerate."""
import torch
from torch import nn
import torch.nn.functional as F
from loop import main
from ppo_rnn import Args, Policy


def sage(n=60000, e=400000, d=128):
    src, dst = torch.randint(0, n, (2, e), device="cuda")
    x, y = torch.randn(n, d, device="cuda"), torch.randint(0, 16, (n,), device="cuda")
    a, b = nn.Linear(2 * d, d).cuda(), nn.Linear(2 * d, 16).cuda()
    opt = torch.optim.Adam([*a.parameters(), *b.parameters()], 0.01)

    def layer(lin, h):
        s = torch.zeros_like(h).index_add(0, dst, h[src])
        return lin(torch.cat([h, s], -1))
    for _ in range(12):
        loss = F.cross_entropy(layer(b, layer(a, x).relu()), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


def factorise(users=60000, items=30000, d=64):
    u, i = nn.Embedding(users, d).cuda(), nn.Embedding(items, d).cuda()
    opt = torch.optim.SGD([*u.parameters(), *i.parameters()], 0.1)
    curve = []
    for _ in range(20):
        a, b, r = torch.randint(0, users, (65536,)).cuda(), torch.randint(0, items, (65536,)).cuda(), torch.rand(65536, device="cuda")
        loss = F.mse_loss((u(a) * i(b)).sum(-1), r)
        opt.zero_grad()
        loss.backward()
        opt.step()
        curve.append(loss.detach())
    print(torch.stack(curve).mean().item())


def ppo_clean():
    a = Args(updates=8)
    pi = Policy(a).cuda()
    opt, h = torch.optim.Adam(pi.parameters(), 3e-4), torch.zeros(a.envs, a.hidden, device="cuda")
    for _ in range(a.updates):
        start, buf = h, []
        with torch.no_grad():
            for _ in range(a.horizon):
                o = torch.zeros(a.envs, a.obs, device="cuda")
                dist, v, h = pi(o, h)
                buf.append((o, dist.mean, dist.log_prob(dist.mean).sum(-1), v))
        g, loss = start, 0.0
        for o, act, old, val in buf:
            dist, v, g = pi(o, g)
            loss = loss - (dist.log_prob(act).sum(-1) - old).exp().mean() + (v - val).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def accelerated():
    from accelerate import Accelerator
    acc = Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
    net = nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(8192, 784), torch.zeros(8192, dtype=torch.long)), 512)
    net, opt, data = acc.prepare(net, opt, data)
    for x, y in data:
        with acc.accumulate(net):
            acc.backward(F.cross_entropy(net(x), y))
            opt.step()
            opt.zero_grad()


if __name__ == "__main__":
    main(globals())
