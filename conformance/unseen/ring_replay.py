"""SAC from pixels; the replay memory is a preallocated ring of uint8 frames on the gpu."""
import random
import torch
import torch.nn as nn

SIZE, SHAPE = 500_000, (3, 84, 84)


class Ring:
    def __init__(self):
        self.obs = torch.zeros((SIZE, *SHAPE), dtype=torch.uint8, device="cuda")
        self.act = torch.zeros(SIZE, 4, device="cuda")
        self.rew = torch.zeros(SIZE, device="cuda")
        self.pos = self.full = 0

    def add(self, o, a, r):
        n = o.size(0)
        sl = slice(self.pos, self.pos + n)
        self.obs[sl], self.act[sl], self.rew[sl] = o, a, r
        self.pos = (self.pos + n) % (SIZE - n)
        self.full = min(SIZE, self.full + n)

    def sample(self, bs):
        i = torch.tensor([random.randrange(self.full - 1) for _ in range(bs)], device="cuda")
        return self.obs[i].float() / 255, self.act[i], self.rew[i], self.obs[i + 1].float() / 255


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU(), nn.Flatten())
        self.mu = nn.Linear(32 * 20 * 20, 4)

    def forward(self, x):
        return torch.tanh(self.mu(self.cnn(x)))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU(), nn.Flatten())
        self.q = nn.Sequential(nn.Linear(32 * 20 * 20 + 4, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, x, a):
        return self.q(torch.cat([self.cnn(x), a], 1)).squeeze(1)


ring, actor, critic = Ring(), Actor().cuda(), Critic().cuda()
a_opt = torch.optim.Adam(actor.parameters(), 1e-4)
c_opt = torch.optim.Adam(critic.parameters(), 1e-4)
for it in range(100):
    frames = torch.randint(0, 255, (64, *SHAPE), dtype=torch.uint8).cuda()
    with torch.no_grad():
        action = actor(frames.float() / 255)
    ring.add(frames, action, torch.rand(64).cuda())
    o, a, r, o2 = ring.sample(256)
    with torch.no_grad():
        y = r + 0.99 * critic(o2, actor(o2))
    c_loss = nn.functional.mse_loss(critic(o, a), y)
    c_opt.zero_grad(); c_loss.backward(); c_opt.step()
    a_loss = -critic(o, actor(o)).mean()
    a_opt.zero_grad(); a_loss.backward(); a_opt.step()
    if it % 50 == 0:
        print(it, c_loss.item(), a_loss.item())
