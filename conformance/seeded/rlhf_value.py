"""A policy is pushed up the hill of a reward model; only the policy has an optimizer."""
import torch
from torch import nn
from note import note, size_of
from loop import main


class Reward(nn.Module):
    def __init__(self, d=3072, n=10):
        super().__init__()
        self.body = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU()) for _ in range(n))
        self.score = nn.Linear(d, 1)

    def forward(self, x):
        for b in self.body:
            x = x + b(x)
        return self.score(x)


def hill(steps=6):
    reward, policy = Reward().cuda().eval(), nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 3072)).cuda()
    opt = torch.optim.Adam(policy.parameters(), 1e-4)
    for _ in range(steps):
        r = reward(policy(torch.randn(512, 256, device="cuda")))
        opt.zero_grad()
        (-r.mean()).backward()
        opt.step()
        note(size_of([p.grad for p in reward.parameters()]))
        del r


if __name__ == "__main__":
    main(globals())
