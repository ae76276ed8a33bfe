import random

import torch
from torch import nn
import torch.nn.functional as F

device = torch.device("cuda")
random.seed(3)
torch.manual_seed(3)


class QNet(nn.Module):
    def __init__(self, actions=18):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 64, 8, 4), nn.ReLU(),
            nn.Conv2d(64, 128, 4, 2), nn.ReLU(),
            nn.Conv2d(128, 128, 3, 1), nn.ReLU(), nn.Flatten())
        self.value = nn.Sequential(nn.Linear(6272, 512), nn.ReLU(), nn.Linear(512, 1))
        self.adv = nn.Sequential(nn.Linear(6272, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, x):
        h = self.body(x / 255.0)
        a = self.adv(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class PrioritizedReplay:
    """Sampling weights are refreshed lazily: only what was drawn gets a new priority."""

    def __init__(self, size):
        self.size = size
        self.frames = torch.randint(0, 255, (size, 4, 84, 84), dtype=torch.uint8)
        self.next = self.frames.roll(-1, 0)
        self.actions = torch.randint(0, 18, (size,))
        self.rewards = torch.rand(size)
        self.priorities = {}

    def draw(self, n):
        fresh = [i for i in range(self.size) if i not in self.priorities]
        seen = list(self.priorities)
        random.shuffle(fresh)
        picked = fresh[: n * 3 // 4]
        picked += random.choices(seen or fresh, k=n - len(picked))
        at = torch.tensor(picked)
        batch = (self.frames[at].to(device).float(), self.actions[at].to(device),
                 self.rewards[at].to(device), self.next[at].to(device).float())
        return picked, batch

    def update(self, picked, errors):
        for i, e in zip(picked, errors):
            self.priorities[i] = e


class Learner:
    def __init__(self, gamma=0.99, sync=10):
        self.online, self.target = QNet().to(device), QNet().to(device)
        self.target.load_state_dict(self.online.state_dict())
        self.target.requires_grad_(False)
        self.opt = torch.optim.RMSprop(self.online.parameters(), lr=2.5e-4)
        self.gamma, self.sync, self.updates = gamma, sync, 0

    def td_error(self, batch):
        s, a, r, s2 = batch
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + self.gamma * self.target(s2).gather(1, best).squeeze(1)
        return goal - q

    def learn(self, memory):
        picked, batch = memory.draw(256)
        loss = F.huber_loss(err := self.td_error(batch), torch.zeros_like(err))
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.opt.step()
        # priorities with the weights after the step
        memory.update(picked, self.td_error(batch).abs() + 1e-3)
        self.updates += 1
        if self.updates % self.sync == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


memory = PrioritizedReplay(8000)
learner = Learner()
for step in range(40):
    loss = learner.learn(memory)
    if step % 8 == 0:
        print("update", step, "loss", round(loss, 4), "with priority", len(memory.priorities))
