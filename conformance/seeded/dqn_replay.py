import argparse
import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class ReplayBuffer:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, n, device):
        state, action, reward, nxt, done = zip(*random.sample(self.memory, n))
        return (torch.from_numpy(np.stack(state)).to(device).float().div_(255),
                torch.tensor(action, device=device),
                torch.tensor(reward, dtype=torch.float32, device=device),
                torch.from_numpy(np.stack(nxt)).to(device).float().div_(255),
                torch.tensor(done, dtype=torch.float32, device=device))

    def __len__(self):
        return len(self.memory)


class DuelingQ(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(inplace=True), nn.Conv2d(32, 64, 4, 2), nn.ReLU(inplace=True),
            nn.Conv2d(64, 64, 3), nn.ReLU(inplace=True), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.advantage = nn.Sequential(nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, actions))

    def forward(self, x):
        h = self.features(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class Agent:
    def __init__(self, actions, device, lr=1e-4, gamma=0.99):
        self.online = DuelingQ(actions).to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.Adam(self.online.parameters(), lr=lr)
        self.gamma, self.actions, self.device = gamma, actions, device

    @torch.no_grad()
    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(self.actions)
        x = torch.from_numpy(state).to(self.device).float().div_(255)
        return self.online(x[None]).argmax(1).item()

    def learn(self, batch):
        state, action, reward, nxt, done = batch
        q = self.online(state).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.online(nxt).argmax(1, keepdim=True)
            goal = reward + self.gamma * (1 - done) * self.target(nxt).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10)
        self.opt.step()
        return loss.item(), q.detach().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--frames', type=int, default=1500)
    p.add_argument('--batch', type=int, default=1024)
    p.add_argument('--start', type=int, default=1100)
    args = p.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    agent, buffer = Agent(6, torch.device('cuda')), ReplayBuffer(10_000)
    state, losses, qs = rng.integers(0, 256, (4, 84, 84), dtype=np.uint8), [], []
    for frame in range(args.frames):
        eps = max(0.05, 1 - frame / 1000)
        action = agent.act(state, eps)
        nxt = rng.integers(0, 256, (4, 84, 84), dtype=np.uint8)
        buffer.push(state, action, float(rng.normal()), nxt, bool(rng.random() < 0.01))
        state = nxt
        if frame > args.start and frame % 8 == 0:
            loss, q = agent.learn(buffer.sample(args.batch, agent.device))
            losses.append(loss)
            qs.append(q)
        if frame % 500 == 499:
            agent.target.load_state_dict(agent.online.state_dict())
    print(len(losses), 'updates', np.mean(losses), np.mean(qs))


if __name__ == '__main__':
    main()
