"""PPO on a toy locomotion task with camera images; the rollout lies on the host, minibatches go to the device."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

device = 'cuda'


@dataclass
class Rollout:
    obs: torch.Tensor
    act: torch.Tensor
    logp: torch.Tensor
    value: torch.Tensor
    reward: torch.Tensor


class Env:
    """Many copies of a toy world with 84 x 84 frames."""

    def __init__(self, n, seed):
        self.n, self.gen = n, torch.Generator().manual_seed(seed)

    def observe(self):
        return torch.randint(256, (self.n, 4, 84, 84), generator=self.gen, dtype=torch.uint8)

    def step(self, action):
        return self.observe(), torch.randn(self.n, generator=self.gen) - 0.01 * action.square().sum(-1)


class Agent(nn.Module):
    def __init__(self, actions=8):
        super().__init__()
        self.see = nn.Sequential(
            nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(), nn.Conv2d(128, 128, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(128 * 49, 1024), nn.ReLU())
        self.mean, self.value = nn.Linear(1024, actions), nn.Linear(1024, 1)
        self.log_std = nn.Parameter(torch.zeros(actions))

    def forward(self, obs):
        h = self.see(obs.float() / 255)
        return self.mean(h), self.log_std.exp(), self.value(h).squeeze(-1)


def log_prob(mean, std, action):
    return (-0.5 * ((action - mean) / std) ** 2 - std.log()).sum(-1)


@torch.no_grad()
def collect(agent, env, obs, steps):
    kept = []
    for _ in range(steps):
        mean, std, value = agent(obs.to(device))
        action = mean + std * torch.randn_like(mean)
        logp = log_prob(mean, std, action)
        nxt, reward = env.step(action.cpu())
        kept.append((obs, action.cpu(), logp.cpu(), value.cpu(), reward))
        obs = nxt
    return Rollout(*(torch.stack(part) for part in zip(*kept))), obs


def advantages(rollout, gamma=0.99, lam=0.95):
    adv, last = torch.zeros_like(rollout.reward), 0.0
    for t in reversed(range(len(adv) - 1)):
        delta = rollout.reward[t] + gamma * rollout.value[t + 1] - rollout.value[t]
        last = adv[t] = delta + gamma * lam * last
    return adv


env = Env(64, 0)
agent = Agent().to(device)
opt = torch.optim.Adam(agent.parameters(), 2.5e-4)
obs = env.observe()
for update in range(3):
    rollout, obs = collect(agent, env, obs, 32)
    adv = advantages(rollout)
    flat = [x.flatten(0, 1) for x in (rollout.obs, rollout.act, rollout.logp, adv, adv + rollout.value)]
    for part in torch.randperm(len(flat[0])).split(512):
        o, a, old, ad, ret = (x[part].to(device) for x in flat)
        mean, std, value = agent(o)
        ratio = (log_prob(mean, std, a) - old).exp()
        loss = -torch.min(ratio * ad, ratio.clamp(0.8, 1.2) * ad).mean() + 0.5 * F.mse_loss(value, ret)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        opt.step()
    print(update, loss.item(), rollout.reward.mean().item())
