import random
from typing import NamedTuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")
N_ENV, N_ACTIONS, CAPACITY, BATCH = 16, 18, 1600, 512


class Sample(NamedTuple):
    obs: torch.Tensor
    action: torch.Tensor
    reward: torch.Tensor
    done: torch.Tensor
    next_obs: torch.Tensor


class Replay:
    """A ring of uint8 frames in host memory."""

    def __init__(self, capacity):
        self.obs = np.zeros((capacity, 4, 84, 84), np.uint8)
        self.next_obs = np.zeros_like(self.obs)
        self.action = np.zeros(capacity, np.int64)
        self.reward = np.zeros(capacity, np.float32)
        self.done = np.zeros(capacity, np.float32)
        self.capacity, self.at, self.full = capacity, 0, False

    def add(self, obs, action, reward, done, next_obs):
        for row in zip(obs, action, reward, done, next_obs):
            (self.obs[self.at], self.action[self.at], self.reward[self.at],
             self.done[self.at], self.next_obs[self.at]) = row
            self.at += 1
            if self.at == self.capacity:
                self.at, self.full = 0, True

    def sample(self, n):
        idx = np.random.randint(0, self.capacity if self.full else self.at, n)
        return Sample(*(torch.from_numpy(a[idx]).to(device) for a in
                        (self.obs, self.action, self.reward, self.done, self.next_obs)))


class Dueling(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(4, 64, 8, 4), nn.ReLU(), nn.Conv2d(64, 128, 4, 2), nn.ReLU(),
                                  nn.Conv2d(128, 128, 3), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(128 * 49, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.adv = nn.Sequential(nn.Linear(128 * 49, 1024), nn.ReLU(), nn.Linear(1024, N_ACTIONS))

    def forward(self, x):
        h = self.conv(x / 255.0)
        a = self.adv(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
online, target = Dueling().to(device), Dueling().to(device)
target.load_state_dict(online.state_dict())
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=1e-4, eps=1.5e-4)
replay = Replay(CAPACITY)


def frames():
    return np.random.randint(0, 256, (N_ENV, 4, 84, 84), dtype=np.uint8)


obs, losses = frames(), []
for step in range(120):
    if random.random() < max(0.05, 1 - step / 80):
        action = np.random.randint(0, N_ACTIONS, N_ENV)
    else:
        with torch.no_grad():
            action = online(torch.from_numpy(obs).to(device)).argmax(1).cpu().numpy()
    next_obs = frames()
    replay.add(obs, action, np.random.randn(N_ENV), np.random.rand(N_ENV) < 0.01, next_obs)
    obs = next_obs
    if step >= 40 and step % 2 == 0:
        b = replay.sample(BATCH)
        with torch.no_grad():
            best = online(b.next_obs).argmax(1, keepdim=True)
            goal = b.reward + 0.99 * (1 - b.done) * target(b.next_obs).gather(1, best).squeeze(1)
        q = online(b.obs).gather(1, b.action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        losses.append(loss.item())
        if len(losses) % 20 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step} loss {np.mean(losses[-20:]):.4f}")
