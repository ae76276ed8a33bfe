import argparse
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical


class PixelVecEnv:
    """n copies of a toy environment that gives stacked 84x84 frames."""

    def __init__(self, n, seed=0):
        self.n = n
        self.rng = np.random.default_rng(seed)
        self.pool = self.rng.integers(0, 255, (n * 4, 4, 84, 84), dtype=np.uint8)
        self.t = 0

    def reset(self):
        self.t = 0
        return self.pool[: self.n]

    def step(self, actions):
        self.t += 1
        pick = self.rng.integers(0, len(self.pool), self.n)
        reward = self.rng.normal(size=self.n).astype(np.float32)
        done = (self.rng.random(self.n) < 0.01).astype(np.float32)
        return self.pool[pick], reward, done


class Policy(nn.Module):
    def __init__(self, n_actions=6):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU())
        self.pi = nn.Linear(512, n_actions)
        self.v = nn.Linear(512, 1)

    def forward(self, x):
        h = self.trunk(x / 255.0)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


@dataclass
class Rollout:
    obs: list = field(default_factory=list)
    actions: list = field(default_factory=list)
    logprobs: list = field(default_factory=list)
    values: list = field(default_factory=list)
    rewards: list = field(default_factory=list)
    dones: list = field(default_factory=list)

    def clear(self):
        for name in self.__dataclass_fields__:
            getattr(self, name).clear()


class PPO:
    def __init__(self, args):
        self.args = args
        self.device = torch.device('cuda')
        self.env = PixelVecEnv(args.num_envs)
        self.policy = Policy().to(self.device)
        self.opt = torch.optim.Adam(self.policy.parameters(), lr=2.5e-4, eps=1e-5)
        self.rollout = Rollout()

    def act(self, obs):
        x = torch.as_tensor(obs, device=self.device).float()
        dist, value = self.policy(x)
        action = dist.sample()
        return action, dist.log_prob(action), value

    def collect(self, obs):
        buf = self.rollout
        for _ in range(self.args.num_steps):
            action, logp, value = self.act(obs)
            nxt, reward, done = self.env.step(action.cpu().numpy())
            buf.obs.append(torch.from_numpy(obs))
            buf.actions.append(action)
            buf.logprobs.append(logp)
            buf.values.append(value)
            buf.rewards.append(torch.from_numpy(reward))
            buf.dones.append(torch.from_numpy(done))
            obs = nxt
        return obs

    def returns(self):
        buf, out, running = self.rollout, [], torch.zeros(self.args.num_envs)
        for r, d in zip(reversed(buf.rewards), reversed(buf.dones)):
            running = r + 0.99 * running * (1 - d)
            out.insert(0, running)
        return torch.cat(out).to(self.device)

    def update(self):
        buf = self.rollout
        obs = torch.cat(buf.obs)
        actions = torch.cat(buf.actions).detach()
        old_logp = torch.cat(buf.logprobs).detach()
        old_v = torch.cat(buf.values).detach()
        ret = self.returns()
        adv = ret - old_v
        for _ in range(self.args.epochs):
            for idx in torch.randperm(len(obs)).split(self.args.minibatch):
                dist, v = self.policy(obs[idx].to(self.device).float())
                i = idx.to(self.device)
                ratio = (dist.log_prob(actions[i]) - old_logp[i]).exp()
                clipped = ratio.clamp(0.9, 1.1)
                pg = -torch.min(ratio * adv[i], clipped * adv[i]).mean()
                loss = pg + 0.5 * F.mse_loss(v, ret[i]) - 0.01 * dist.entropy().mean()
                self.opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
                self.opt.step()
        buf.clear()
        return loss.item()

    def train(self):
        obs = self.env.reset()
        for it in range(self.args.iterations):
            obs = self.collect(obs)
            print(f'iter {it} loss {self.update():.4f}')


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--num-envs', type=int, default=128)
    p.add_argument('--num-steps', type=int, default=128)
    p.add_argument('--minibatch', type=int, default=1024)
    p.add_argument('--epochs', type=int, default=2)
    p.add_argument('--iterations', type=int, default=2)
    PPO(p.parse_args()).train()
