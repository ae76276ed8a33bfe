"""PPO on a vectorised pixel environment (toy env, so that it runs anywhere)."""
import argparse
from collections import deque

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class ToyPixelEnv:
    """num_envs copies of a moving-dot environment, 84x84x4 uint8 frames."""

    def __init__(self, num_envs, seed=1):
        self.rng = np.random.default_rng(seed)
        self.n = num_envs
        self.t = 0

    def reset(self):
        self.t = 0
        return self._frame()

    def _frame(self):
        return self.rng.integers(0, 255, (self.n, 4, 84, 84), dtype=np.uint8)

    def step(self, actions):
        self.t += 1
        reward = self.rng.normal(size=self.n).astype(np.float32)
        done = (self.rng.random(self.n) < 0.01).astype(np.float32)
        return self._frame(), reward, done


class ActorCritic(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 7 * 7, 1024), nn.ReLU())
        self.pi = nn.Linear(1024, n_actions)
        self.v = nn.Linear(1024, 1)

    def forward(self, obs):
        h = self.trunk(obs.float() / 255.0)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


class Rollout:
    def __init__(self):
        self.obs, self.actions, self.logp, self.values, self.rewards, self.dones = [], [], [], [], [], []

    def add(self, obs, action, logp, value, reward, done):
        self.obs.append(obs)
        self.actions.append(action)
        self.logp.append(logp)
        self.values.append(value)
        self.rewards.append(torch.as_tensor(reward))
        self.dones.append(torch.as_tensor(done))

    def advantages(self, last_value, gamma=0.99, lam=0.95):
        values = [v.detach().cpu() for v in self.values] + [last_value.detach().cpu()]
        adv, out = 0.0, []
        for t in reversed(range(len(self.rewards))):
            alive = 1.0 - self.dones[t]
            delta = self.rewards[t] + gamma * values[t + 1] * alive - values[t]
            adv = delta + gamma * lam * alive * adv
            out.insert(0, adv)
        adv = torch.stack(out)
        return adv, adv + torch.stack(values[:-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--num-envs", type=int, default=256)
    p.add_argument("--horizon", type=int, default=64)
    p.add_argument("--updates", type=int, default=2)
    p.add_argument("--minibatches", type=int, default=16)
    args = p.parse_args()
    device = "cuda"
    torch.manual_seed(0)

    env = ToyPixelEnv(args.num_envs)
    agent = ActorCritic(6).to(device)
    opt = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    returns = deque(maxlen=100)
    obs = env.reset()

    for update in range(args.updates):
        buf = Rollout()
        for _ in range(args.horizon):
            x = torch.from_numpy(obs).to(device)
            dist, value = agent(x)
            action = dist.sample()
            next_obs, reward, done = env.step(action.cpu().numpy())
            buf.add(obs, action, dist.log_prob(action), value, reward, done)
            returns.append(float(reward.mean()))
            obs = next_obs

        with torch.no_grad():
            _, last = agent(torch.from_numpy(obs).to(device))
        adv, ret = buf.advantages(last)
        adv, ret = adv.flatten(), ret.flatten()
        b_obs = torch.from_numpy(np.concatenate(buf.obs))
        b_act = torch.cat(buf.actions)
        b_logp = torch.cat(buf.logp).detach()

        order = torch.randperm(len(b_obs))
        for idx in order.chunk(args.minibatches):
            dist, value = agent(b_obs[idx].to(device))
            gidx = idx.to(device)
            ratio = (dist.log_prob(b_act[gidx]) - b_logp[gidx]).exp()
            a = adv[idx].to(device)
            a = (a - a.mean()) / (a.std() + 1e-8)
            pg = -torch.min(ratio * a, ratio.clamp(0.8, 1.2) * a).mean()
            vf = (value - ret[idx].to(device)).pow(2).mean()
            loss = pg + 0.5 * vf - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            opt.step()
        print(f"update {update} mean reward {np.mean(returns):.3f}")


if __name__ == "__main__":
    main()
