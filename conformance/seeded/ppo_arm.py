"""PPO for a seven-joint arm from depth images."""
import importlib

import torch
from torch import nn
from torch.distributions import Normal

rollouts = importlib.import_module("ppo_arm_lib")

ARMS, HORIZON, UPDATES, CLIP = 4096, 16, 14, 0.2


class Policy(nn.Module):
    def __init__(self, pixels=1024, joints=7, width=512):
        super().__init__()
        self.see = nn.Sequential(nn.Linear(pixels, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.mean = nn.Linear(width, joints)
        self.log_spread = nn.Parameter(torch.zeros(joints))

    def forward(self, seen):
        return Normal(self.mean(self.see(seen)), self.log_spread.exp(), validate_args=False)


def objective(policy, step, gain):
    chance = policy(step.seen).log_prob(step.action).sum(1)
    ratio = (chance - step.chance).exp()
    gain = (gain - gain.mean()) / (gain.std() + 1e-6)
    return -torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()


def main():
    policy = Policy().cuda()
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    arms = rollouts.Arms(ARMS)
    for update in range(UPDATES):
        steps = rollouts.gather(policy, arms, HORIZON)
        gains = rollouts.returns(steps)
        for step, gain in zip(steps[::4], gains[::4]):
            loss = objective(policy, step, gain)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(update, gains[0].mean().item())


if __name__ == "__main__":
    main()
