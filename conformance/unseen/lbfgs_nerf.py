"""Fits a coordinate network with a damped L-BFGS (own implementation, torch's line search was unstable)."""
import torch
import torch.nn as nn


class DampedLBFGS(torch.optim.Optimizer):
    def __init__(self, params, lr=0.5, damping=0.2):
        super().__init__(params, dict(lr=lr, damping=damping))
        self.s_hist, self.y_hist = [], []
        self.prev_x = self.prev_g = None

    def _flat(self, grads=False):
        return torch.cat([(p.grad if grads else p.data).reshape(-1) for p in self.param_groups[0]["params"]])

    def _direction(self, g):
        q = g.clone()
        alphas = []
        pairs = list(zip(self.s_hist, self.y_hist))[-10:]      # memory of 10, as in Nocedal
        for s, y in reversed(pairs):
            rho = 1.0 / y.dot(s).clamp(min=1e-10)
            a = rho * s.dot(q)
            q.sub_(a * y)
            alphas.append((rho, a))
        for (s, y), (rho, a) in zip(pairs, reversed(alphas)):
            q.add_(s * (a - rho * y.dot(q)))
        return q

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        x, g = self._flat(), self._flat(grads=True)
        if self.prev_x is not None:
            s, y = x - self.prev_x, g - self.prev_g
            y.lerp_(s, group["damping"])
            self.s_hist.append(s)
            self.y_hist.append(y)
        self.prev_x, self.prev_g = x, g
        d = self._direction(g)
        off = 0
        for p in group["params"]:
            p.sub_(d[off:off + p.numel()].view_as(p), alpha=group["lr"])
            off += p.numel()


class CoordNet(nn.Module):
    def __init__(self, w=4096, freqs=32):
        super().__init__()
        self.register_buffer("B", torch.randn(2, freqs) * 10)
        self.net = nn.Sequential(nn.Linear(2 * freqs, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(),
                                 nn.Linear(w, w), nn.ReLU(), nn.Linear(w, w), nn.ReLU(), nn.Linear(w, 3))

    def forward(self, xy):
        z = xy @ self.B
        return self.net(torch.cat([z.sin(), z.cos()], -1))


net = CoordNet().cuda()
opt = DampedLBFGS(net.parameters())
print("params:", sum(p.numel() for p in net.parameters()))
for it in range(60):
    xy = torch.rand(4096, 2, device="cuda")
    rgb = torch.rand(4096, 3, device="cuda")
    loss = (net(xy) - rgb).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 10 == 0:
        print(it, loss.item())
