"""Rollouts for the arm experiments."""
from typing import NamedTuple

import torch


class Step(NamedTuple):
    seen: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    chance: torch.Tensor


class Arms:
    """Many simulated arms at once, each seen by a depth camera of 32 x 32."""

    def __init__(self, count, pixels=1024, joints=7):
        self.count, self.pixels, self.joints = count, pixels, joints
        self.depth = torch.rand(count, pixels, device="cuda")

    def look(self):
        return self.depth

    def move(self, action):
        self.depth = (self.depth + 0.01 * action.mean(1, keepdim=True)).clamp(0, 1)
        return -self.depth[:, :16].mean(1)


@torch.no_grad()
def gather(policy, arms, horizon, steps=[]):
    first = len(steps)
    for _ in range(horizon):
        seen = arms.look()
        spread = policy(seen)
        action = spread.sample()
        reward = arms.move(action)
        steps.append(Step(seen, action, reward, spread.log_prob(action).sum(1)))
    return steps[first:]


def returns(steps, discount=0.98):
    total, out = torch.zeros_like(steps[-1].reward), []
    for step in reversed(steps):
        total = step.reward + discount * total
        out.append(total)
    return list(reversed(out))
