from dataclasses import dataclass, field

import torch
import torch.nn as nn
from torch.distributions import Normal


@dataclass
class PPOConfig:
    obs_dim: int = 512
    act_dim: int = 32
    num_envs: int = 4096
    horizon: int = 32
    updates: int = 2
    epochs: int = 2
    minibatches: int = 4
    gamma: float = 0.99
    lam: float = 0.95


@dataclass
class Rollout:
    obs: list = field(default_factory=list)
    actions: list = field(default_factory=list)
    logp: list = field(default_factory=list)
    values: list = field(default_factory=list)
    rewards: list = field(default_factory=list)

    def add(self, **kw):
        for k, v in kw.items():
            getattr(self, k).append(v)

    def stacked(self):
        return {k: torch.stack(v) for k, v in self.__dict__.items()}

    def clear(self):
        for v in self.__dict__.values():
            v.clear()


class ActorCritic(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(cfg.obs_dim, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh())
        self.mu = nn.Linear(512, cfg.act_dim)
        self.v = nn.Linear(512, 1)
        self.log_std = nn.Parameter(torch.zeros(cfg.act_dim))

    def forward(self, obs):
        h = self.trunk(obs)
        return Normal(self.mu(h), self.log_std.exp(), validate_args=False), self.v(h).squeeze(-1)


cfg = PPOConfig()
agent = ActorCritic(cfg).cuda()
optim = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
rollout = Rollout()
obs = torch.randn(cfg.num_envs, cfg.obs_dim, device="cuda")

for update in range(cfg.updates):
    for t in range(cfg.horizon):
        with torch.no_grad():
            dist, value = agent(obs)
            action = dist.sample()
            logp = dist.log_prob(action).sum(-1)
        rollout.add(obs=obs, actions=action, logp=logp, values=value, rewards=torch.randn(cfg.num_envs, device="cuda"))
        obs = torch.randn(cfg.num_envs, cfg.obs_dim, device="cuda")

    data = rollout.stacked()
    adv = torch.zeros_like(data["rewards"])
    last = torch.zeros(cfg.num_envs, device="cuda")
    nxt = torch.zeros(cfg.num_envs, device="cuda")
    for t in reversed(range(cfg.horizon)):
        delta = data["rewards"][t] + cfg.gamma * nxt - data["values"][t]
        last = delta + cfg.gamma * cfg.lam * last
        adv[t] = last
        nxt = data["values"][t]
    returns = adv + data["values"]

    flat = {k: v.flatten(0, 1) for k, v in data.items()}
    adv, returns = adv.flatten(), returns.flatten()
    n = adv.shape[0]
    for _ in range(cfg.epochs):
        perm = torch.randperm(n)
        for idx in perm.chunk(cfg.minibatches):
            idx = idx.cuda()
            dist, v = agent(flat["obs"][idx])
            ratio = (dist.log_prob(flat["actions"][idx]).sum(-1) - flat["logp"][idx]).exp()
            a = adv[idx]
            pg = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            loss = pg + 0.5 * (v - returns[idx]).pow(2).mean()
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optim.step()
    rollout.clear()
    print("update", update)
