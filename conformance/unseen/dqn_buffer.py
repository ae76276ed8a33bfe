import random
from collections import deque
import torch
import torch.nn as nn
import torch.nn.functional as F

CAPACITY = 1_000_000      # like in the nature paper
DEVICE = torch.device("cuda")


class ReplayBuffer(object):
    def __init__(self, capacity):
        self.buffer = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state, done):
        self.buffer.append((state, action, reward, next_state, done))

    def sample(self, batch_size):
        s, a, r, n, d = zip(*random.sample(self.buffer, batch_size))
        return (torch.cat(s), torch.tensor(a, device=DEVICE), torch.tensor(r, device=DEVICE),
                torch.cat(n), torch.tensor(d, device=DEVICE))

    def __len__(self):
        return len(self.buffer)


class QNet(nn.Module):
    def __init__(self, n_actions):
        super(QNet, self).__init__()
        self.f = nn.Sequential(nn.Conv2d(9, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU())
        self.h = nn.Linear(32 * 62 * 62, n_actions)

    def forward(self, x):
        return self.h(self.f(x).flatten(1))


def preprocess(frame):
    # frame: uint8 (9, 512, 512) from the env
    return torch.as_tensor(frame, device=DEVICE).unsqueeze(0).float().div_(255)


class Env:
    frames = [torch.randint(0, 255, (9, 512, 512), dtype=torch.uint8) for _ in range(16)]

    def reset(self):
        self.t = 0
        return random.choice(self.frames)

    def step(self, a):
        self.t += 1
        return random.choice(self.frames), random.random(), self.t >= 200


env = Env()
policy, target = QNet(6).to(DEVICE), QNet(6).to(DEVICE)
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.RMSprop(policy.parameters(), lr=2.5e-4)
memory = ReplayBuffer(CAPACITY)

frame_idx, episode = 0, 0
while frame_idx < 2600:
    state = preprocess(env.reset())
    done = False
    while not done:
        eps = max(0.05, 1.0 - frame_idx / 2000)
        if random.random() < max(eps, 0.97):   # mostly random while debugging
            action = random.randrange(6)
        else:
            with torch.no_grad():
                action = policy(state).argmax(1).item()
        frame, reward, done = env.step(action)
        next_state = preprocess(frame)
        memory.push(state, action, reward, next_state, float(done))
        state = next_state
        frame_idx += 1

        if frame_idx > 400 and frame_idx % 50 == 0:
            s, a, r, n, d = memory.sample(32)
            q = policy(s).gather(1, a.unsqueeze(1)).squeeze(1)
            with torch.no_grad():
                y = r + 0.99 * target(n).max(1).values * (1 - d)
            loss = F.smooth_l1_loss(q, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if frame_idx % 500 == 0:
            target.load_state_dict(policy.state_dict())
            print("frame", frame_idx, "episode", episode, "buffer", len(memory))
    episode += 1
print("done")
