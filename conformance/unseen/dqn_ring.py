import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Batch:
    state: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    following: torch.Tensor


class RingReplay:
    """A fixed number of frames; the oldest are overwritten."""

    def __init__(self, capacity, shape, device):
        self.frames = torch.zeros(capacity, *shape, dtype=torch.uint8, device=device)
        self.actions = torch.zeros(capacity, dtype=torch.long, device=device)
        self.rewards = torch.zeros(capacity, device=device)
        self.capacity, self.position, self.full = capacity, 0, False

    def push(self, frames, actions, rewards):
        n = len(frames)
        rows = slice(self.position, self.position + n)
        self.frames[rows] = frames
        self.actions[rows] = actions
        self.rewards[rows] = rewards
        self.position += n
        if self.position >= self.capacity:
            self.position, self.full = 0, True

    def sample(self, n):
        top = self.capacity if self.full else self.position
        index = torch.tensor([random.randrange(top - 1) for _ in range(n)], device=self.frames.device)
        return Batch(self.frames[index].float() / 255, self.actions[index], self.rewards[index],
                     self.frames[index + 1].float() / 255)


class QNet(nn.Module):
    def __init__(self, actions=18):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, x):
        return self.net(x)


def main():
    random.seed(0)
    device = "cuda"
    online, target = QNet().to(device), QNet().to(device)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=6e-5)
    replay = RingReplay(131_072, (4, 84, 84), device)
    losses = []
    for step in range(16):
        frames = torch.randint(0, 256, (16384, 4, 84, 84), dtype=torch.uint8, device=device)
        replay.push(frames, torch.zeros(16384, dtype=torch.long, device=device), torch.zeros(16384, device=device))
        batch = replay.sample(1024)
        with torch.no_grad():
            goal = batch.reward + 0.99 * target(batch.following).max(1).values
        value = online(batch.state).gather(1, batch.action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 8 == 7:
            target.load_state_dict(online.state_dict())
            print(step, sum(losses[-8:]) / 8, flush=True)


if __name__ == "__main__":
    main()
