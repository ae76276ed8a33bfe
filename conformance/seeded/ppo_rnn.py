"""PPO with a recurrent policy; rollouts are gathered, then epochs over chunks of them."""
from dataclasses import dataclass
import torch
from torch import nn
from torch.distributions import Normal
from note import Growth
from loop import main


@dataclass
class Args:
    envs: int = 2048
    horizon: int = 16
    obs: int = 128
    act: int = 12
    hidden: int = 512
    updates: int = 40


class Policy(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(a.obs, a.hidden), nn.Tanh(), nn.Linear(a.hidden, a.hidden), nn.Tanh())
        self.rnn = nn.GRUCell(a.hidden, a.hidden)
        self.mu, self.v = nn.Linear(a.hidden, a.act), nn.Linear(a.hidden, 1)
        self.log_std = nn.Parameter(torch.zeros(a.act))

    def forward(self, o, h):
        h = self.rnn(self.enc(o), h)
        return Normal(self.mu(h), self.log_std.exp(), validate_args=False), self.v(h).squeeze(-1), h


class Runner:
    def __init__(self, a, pi):
        self.a, self.pi = a, pi
        self.h = torch.zeros(a.envs, a.hidden, device="cuda")
        self.o = torch.zeros(a.envs, a.obs, device="cuda")

    def rollout(self):
        buf = []
        start = self.h.detach()
        for _ in range(self.a.horizon):
            dist, v, self.h = self.pi(self.o, self.h)
            a = dist.mean.detach()
            buf.append((self.o, a, dist.log_prob(a).sum(-1).detach(), v.detach()))
            self.o = torch.zeros_like(self.o)
        return start, buf


def train():
    a = Args()
    pi = Policy(a).cuda()
    opt = torch.optim.Adam(pi.parameters(), 3e-4, eps=1e-5)
    runner, grown = Runner(a, pi), Growth()
    for it in range(a.updates):
        start, buf = runner.rollout()
        for epoch in range(2):
            h, loss = start, 0.0
            for o, act, old, val in buf:
                dist, v, h = pi(o, h)
                ratio = (dist.log_prob(act).sum(-1) - old).exp()
                loss = loss - (ratio * 1.0).clamp(0.8, 1.2).mean() + 0.5 * (v - val).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(pi.parameters(), 0.5)
            opt.step()
        del start, buf, h, loss, dist, v, ratio, o, act, old, val
        grown.note()


if __name__ == "__main__":
    main(globals())
