import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "obs action reward nxt done")


class VecPong:
    """A vectorised simulator that renders on the GPU."""

    def __init__(self, n, frames=4, side=84):
        self.n, self.shape = n, (n, frames, side, side)

    def reset(self):
        self.t = 0
        return torch.rand(self.shape, device="cuda")

    def step(self, action):
        self.t += 1
        frame = torch.rand(self.shape, device="cuda")
        reward = torch.zeros(self.n, device="cuda")
        done = torch.full((self.n,), self.t % 200 == 0, device="cuda")
        return frame, reward, done


class QNet(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.value, self.advantage = nn.Linear(512, 1), nn.Linear(512, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


class Agent:
    def __init__(self, envs, actions=6, capacity=8_000):
        self.online, self.target = QNet(actions).cuda(), QNet(actions).cuda()
        self.target.load_state_dict(self.online.state_dict())
        self.memory = deque(maxlen=capacity)
        self.opt = torch.optim.Adam(self.online.parameters(), 6.25e-5, eps=1.5e-4)
        self.actions, self.envs, self.updates = actions, envs, 0

    @torch.no_grad()
    def act(self, obs, eps):
        if random.random() < eps:
            return torch.randint(0, self.actions, (obs.shape[0],), device="cuda")
        return self.online(obs).argmax(1)

    def remember(self, obs, action, reward, nxt, done):
        self.memory.append(Transition(obs, action, reward, nxt, done))

    def learn(self, gamma=0.99):
        t = Transition(*(torch.cat(field) for field in zip(*random.sample(self.memory, 4))))
        with torch.no_grad():
            best = self.online(t.nxt).argmax(1, keepdim=True)
            future = self.target(t.nxt).gather(1, best).squeeze(1)
            goal = t.reward + gamma * future * (~t.done)
        q = self.online(t.obs).gather(1, t.action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.opt.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return loss.item()


def main(steps=600, envs=64):
    random.seed(5)
    env, agent = VecPong(envs), Agent(envs)
    obs, losses = env.reset(), deque(maxlen=100)
    for step in range(steps):
        eps = max(0.05, 1 - step / 400)
        action = agent.act(obs, eps)
        nxt, reward, done = env.step(action)
        agent.remember(obs, action, reward, nxt, done)
        obs = nxt
        if step > 32 and step % 4 == 0:
            losses.append(agent.learn())
        if step % 100 == 99:
            print(step + 1, f"eps {eps:.2f}", f"loss {sum(losses) / len(losses):.4f}", len(agent.memory))


main()
