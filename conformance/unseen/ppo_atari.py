from dataclasses import dataclass, field
from typing import List

import torch
import torch.nn as nn
from torch.distributions import Categorical


@dataclass
class PPOConfig:
    envs: int = 512
    horizon: int = 16
    iterations: int = 200
    epochs: int = 1
    minibatches: int = 2
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    lr: float = 2.5e-4


@dataclass
class Rollout:
    frames: List[torch.Tensor] = field(default_factory=list)
    actions: List[torch.Tensor] = field(default_factory=list)
    logps: List[torch.Tensor] = field(default_factory=list)
    values: List[torch.Tensor] = field(default_factory=list)
    rewards: List[torch.Tensor] = field(default_factory=list)

    def add(self, frame, action, logp, value, reward):
        self.frames.append(frame)
        self.actions.append(action)
        self.logps.append(logp)
        self.values.append(value)
        self.rewards.append(reward)

    def recent(self, n):
        return torch.cat(self.frames[-n:])

    def reset(self):
        for part in (self.actions, self.logps, self.values, self.rewards):
            part.clear()


class FakeAtari:
    """Vectorised environment that lives on the device."""

    def __init__(self, n, device):
        self.n, self.device = n, device

    def reset(self):
        return torch.zeros(self.n, 4, 84, 84, device=self.device)

    def step(self, action):
        frame = torch.rand(self.n, 4, 84, 84, device=self.device)
        return frame, torch.zeros(self.n, device=self.device)


class Policy(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU())
        self.pi = nn.Linear(512, actions)
        self.v = nn.Linear(512, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.pi(h), self.v(h).squeeze(-1)


class PPO:
    def __init__(self, cfg, device="cuda"):
        self.cfg, self.device = cfg, device
        self.env = FakeAtari(cfg.envs, device)
        self.policy = Policy().to(device)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=cfg.lr, eps=1e-5)
        self.rollout = Rollout()
        self.frame = self.env.reset()

    @torch.no_grad()
    def collect(self):
        self.rollout.reset()
        for _ in range(self.cfg.horizon):
            logits, value = self.policy(self.frame)
            action = torch.zeros(self.cfg.envs, dtype=torch.long, device=self.device)
            logp = logits.log_softmax(-1).gather(1, action[:, None]).squeeze(1)
            nxt, reward = self.env.step(action)
            self.rollout.add(self.frame, action, logp, value, reward)
            self.frame = nxt
        return self.policy(self.frame)[1]

    @torch.no_grad()
    def advantages(self, last_value):
        r, v = self.rollout.rewards, self.rollout.values + [last_value]
        out, running = [], torch.zeros_like(last_value)
        for t in reversed(range(len(r))):
            delta = r[t] + self.cfg.gamma * v[t + 1] - v[t]
            running = delta + self.cfg.gamma * self.cfg.lam * running
            out.insert(0, running)
        return torch.cat(out)

    def update(self, adv):
        frames = self.rollout.recent(self.cfg.horizon)
        actions, old = torch.cat(self.rollout.actions), torch.cat(self.rollout.logps)
        returns = adv + torch.cat(self.rollout.values)
        size = len(actions) // self.cfg.minibatches
        for _ in range(self.cfg.epochs):
            for part in range(self.cfg.minibatches):
                s = slice(part * size, (part + 1) * size)
                logits, value = self.policy(frames[s])
                logp = logits.log_softmax(-1).gather(1, actions[s, None]).squeeze(1)
                ratio = (logp - old[s]).exp()
                pg = -torch.min(ratio * adv[s], ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip) * adv[s]).mean()
                loss = pg + 0.5 * (value - returns[s]).pow(2).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

    def train(self):
        for it in range(self.cfg.iterations):
            last = self.collect()
            self.update(self.advantages(last))
            print(f"iteration {it}", flush=True)


PPO(PPOConfig()).train()
