"""World-model agent: collects from 192 vectorised environments, learns from replayed sequences."""
import argparse
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--envs", type=int, default=192)
p.add_argument("--steps", type=int, default=60)
p.add_argument("--train-every", type=int, default=5)
p.add_argument("--seq", type=int, default=6)
args = p.parse_args()
device = "cuda"
torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 4, 2), nn.ELU(),
            nn.Conv2d(width, 2 * width, 4, 2), nn.ELU(),
            nn.Conv2d(2 * width, 4 * width, 4, 2), nn.ELU(),
            nn.Conv2d(4 * width, 8 * width, 4, 2), nn.ELU(), nn.Flatten())

    def forward(self, x):
        return self.net(x)


class WorldModel(nn.Module):
    def __init__(self, deter=1024, actions=6):
        super().__init__()
        self.encoder = Encoder()
        self.embed = nn.Linear(1024, deter)
        self.cell = nn.GRUCell(deter + actions, deter)
        self.reward = nn.Sequential(nn.Linear(deter, 512), nn.ELU(), nn.Linear(512, 1))
        self.decode = nn.Sequential(nn.Linear(deter, 1024), nn.ELU(), nn.Linear(1024, 1024))
        self.actor = nn.Sequential(nn.Linear(deter, 512), nn.ELU(), nn.Linear(512, actions))

    def observe(self, frame, action, state):
        e = self.embed(self.encoder(frame))
        return self.cell(torch.cat([e, action], -1), state)


class Agent:
    def __init__(self, model):
        self.model = model
        self.belief = torch.zeros(args.envs, 1024, device=device)
        self.last = torch.zeros(args.envs, 6, device=device)

    def act(self, frame, first):
        keep = (1.0 - first).unsqueeze(1)
        self.belief = self.model.observe(frame, self.last * keep, self.belief * keep)
        probs = F.softmax(self.model.actor(self.belief.detach()), -1)
        choice = probs.argmax(-1)
        self.last = F.one_hot(choice, 6).float()
        return choice.cpu()


class Replay:
    def __init__(self, length=40):
        self.steps = deque(maxlen=length)

    def add(self, *step):
        self.steps.append(step)

    def sample(self, n, seq):
        at = random.randrange(len(self.steps) - seq + 1)
        rows = torch.randperm(args.envs)[:n]
        part = [self.steps[at + i] for i in range(seq)]
        return [torch.stack([s[k][rows] for s in part]).to(device) for k in range(3)]


model = WorldModel().to(device)
agent = Agent(model)
replay = Replay()
opt = torch.optim.Adam(model.parameters(), 3e-4)
gen = torch.Generator().manual_seed(1)
first = torch.ones(args.envs)

for step in range(args.steps):
    frame = torch.rand(args.envs, 3, 64, 64, generator=gen)
    action = agent.act(frame.to(device), first.to(device))
    reward = torch.rand(args.envs, generator=gen)
    first = (torch.rand(args.envs, generator=gen) < 0.02).float()
    replay.add(frame, F.one_hot(action, 6).float(), reward)

    if step >= args.seq and step % args.train_every == 0:
        frames, actions, rewards = replay.sample(32, args.seq)
        state = torch.zeros(32, 1024, device=device)
        loss = 0.0
        for t in range(args.seq):
            state = model.observe(frames[t], actions[t], state)
            loss = loss + F.mse_loss(model.reward(state).squeeze(1), rewards[t])
            loss = loss + F.mse_loss(model.decode(state), model.encoder(frames[t]).detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
