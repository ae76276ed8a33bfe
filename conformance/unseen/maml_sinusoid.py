"""MAML on regression tasks (sinusoids, but wide net)"""
import math
import torch
import torch.nn.functional as F
from torch.func import functional_call


class Task:
    def __init__(self, dev):
        self.a, self.phi, self.dev = 0.1 + 4.9 * torch.rand(1).item(), math.pi * torch.rand(1).item(), dev

    def sample(self, k):
        x = torch.rand(k, 1, device=self.dev) * 10 - 5
        return x, self.a * torch.sin(x + self.phi)


def make_net(width=4096):
    return torch.nn.Sequential(torch.nn.Linear(1, width), torch.nn.Tanh(), torch.nn.Linear(width, width),
                               torch.nn.Tanh(), torch.nn.Linear(width, width), torch.nn.Tanh(),
                               torch.nn.Linear(width, 1))


def adapt(net, params, task, inner_lr, inner_steps):
    for _ in range(inner_steps):
        x, y = task.sample(64)
        loss = F.mse_loss(functional_call(net, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {k: p - inner_lr * g for (k, p), g in zip(params.items(), grads)}
    return params


def meta_train(iterations=2, meta_batch=64, inner_steps=3, dev="cuda"):
    net = make_net().to(dev)
    meta_opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for it in range(iterations):
        meta_opt.zero_grad()
        meta_loss = 0.0
        for _ in range(meta_batch):
            task = Task(dev)
            fast = adapt(net, dict(net.named_parameters()), task, 0.01, inner_steps)
            xq, yq = task.sample(64)
            meta_loss = meta_loss + F.mse_loss(functional_call(net, fast, (xq,)), yq) / meta_batch
        meta_loss.backward()
        meta_opt.step()
        print("iteration", it, "meta loss", float(meta_loss))


if __name__ == "__main__":
    meta_train()
