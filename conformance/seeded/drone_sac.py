"""Soft actor-critic for a drone from pictures. The replay lies in host memory as bytes."""
import copy
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")
torch.manual_seed(0)
rng = np.random.default_rng(0)


class Eye(nn.Sequential):
    def __init__(self, out=50):
        super().__init__(nn.Conv2d(9, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(),
                         nn.Flatten(), nn.Linear(32 * 37 * 37, out), nn.LayerNorm(out), nn.Tanh())


class Actor(nn.Module):
    def __init__(self, actions=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(50, 1024), nn.ReLU(), nn.Linear(1024, 2 * actions))

    def forward(self, z):
        mean, log_std = self.net(z).chunk(2, -1)
        std = log_std.clamp(-10, 2).exp()
        noise = torch.randn_like(mean)
        action = torch.tanh(mean + std * noise)
        logp = (-0.5 * noise.square() - std.log() - (1 - action.square() + 1e-6).log()).sum(-1)
        return action, logp


class Critic(nn.Module):
    def __init__(self, actions=4):
        super().__init__()
        self.eye = Eye()
        self.q1, self.q2 = [nn.Sequential(nn.Linear(50 + actions, 1024), nn.ReLU(), nn.Linear(1024, 1)) for _ in range(2)]

    def forward(self, obs, action):
        h = torch.cat([self.eye(obs / 255), action], -1)
        return self.q1(h).squeeze(-1), self.q2(h).squeeze(-1)


class Replay:
    def __init__(self, size=600):
        self.obs = np.zeros((size, 9, 84, 84), np.uint8)
        self.act, self.rew = np.zeros((size, 4), np.float32), np.zeros(size, np.float32)
        self.n = 0

    def add(self, obs, act, rew):
        k = self.n % len(self.obs)
        self.obs[k], self.act[k], self.rew[k] = obs, act, rew
        self.n += 1

    def sample(self, count):
        at = rng.integers(0, min(self.n, len(self.obs)) - 1, count)
        parts = self.obs[at], self.act[at], self.rew[at], self.obs[at + 1]
        return [torch.as_tensor(p).to(device).float() for p in parts]


actor, critic = Actor().to(device), Critic().to(device)
goal = copy.deepcopy(critic).requires_grad_(False)
alpha = torch.zeros((), device=device, requires_grad=True)
opts = {name: torch.optim.Adam(ps, 3e-4) for name, ps in
        {"actor": list(actor.parameters()), "critic": list(critic.parameters()), "alpha": [alpha]}.items()}
replay, returns = Replay(), deque(maxlen=20)


@torch.no_grad()
def act(obs):
    z = critic.eye(torch.as_tensor(obs).to(device).float().unsqueeze(0) / 255)
    return actor(z)[0][0].cpu().numpy()


for step in range(200):
    obs = rng.integers(0, 255, (9, 84, 84), dtype=np.uint8)
    action = act(obs)
    returns.append(float(rng.random()))
    replay.add(obs, action, returns[-1])
    if step < 160:
        continue
    o, a, r, o2 = replay.sample(128)
    with torch.no_grad():
        a2, logp2 = actor(critic.eye(o2 / 255))
        target = r + 0.99 * (torch.min(*goal(o2, a2)) - alpha.exp() * logp2)
    q1, q2 = critic(o, a)
    loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
    opts["critic"].zero_grad()
    loss.backward()
    opts["critic"].step()

    critic.requires_grad_(False)
    z = critic.eye(o / 255)
    made, logp = actor(z)
    h = torch.cat([z, made], -1)
    policy = (alpha.exp().detach() * logp - torch.min(critic.q1(h), critic.q2(h)).squeeze(-1)).mean()
    entropy = -(alpha.exp() * (logp.detach() - 4)).mean()
    for name, part in (("actor", policy), ("alpha", entropy)):
        opts[name].zero_grad()
        part.backward()
        opts[name].step()
    critic.requires_grad_(True)
    with torch.no_grad():
        for p, q in zip(goal.parameters(), critic.parameters()):
            p.lerp_(q, 0.01)
    if step % 10 == 0:
        print(step, round(loss.item(), 4), round(policy.item(), 4), f"return {np.mean(returns):.2f}")
