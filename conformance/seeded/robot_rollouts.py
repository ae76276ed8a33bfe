"""Actor-critic on camera images, one rollout after the other."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = 'cuda'


class Camera:
    """Renders on the device, as the simulator does."""

    def __init__(self, robots):
        self.robots = robots

    def frame(self):
        return torch.rand(self.robots, 3, 128, 128, device=device)


class Moment:
    def __init__(self, rollout, frame, action, reward):
        self.rollout = rollout
        self.frame = frame
        self.action = action
        self.reward = reward

    def goal(self, index, gamma=0.97):
        later = self.rollout.moments[index:]
        return sum(gamma ** i * m.reward for i, m in enumerate(later))


class Rollout:
    def __init__(self):
        self.moments = []

    def add(self, frame, action, reward):
        self.moments.append(Moment(self, frame, action, reward))

    def goals(self):
        return torch.stack([m.goal(i) for i, m in enumerate(self.moments)])


class Agent(nn.Module):
    def __init__(self, actions=12):
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2d(3, 32, 8, 4), nn.ELU(), nn.Conv2d(32, 64, 4, 2), nn.ELU(), nn.Conv2d(64, 64, 3, 2), nn.ELU(),
            nn.Flatten(), nn.Linear(64 * 6 * 6, 1024), nn.ELU())
        self.actor, self.critic = nn.Linear(1024, actions), nn.Linear(1024, 1)

    def forward(self, frame):
        z = self.eye(frame)
        return torch.distributions.Categorical(logits=self.actor(z), validate_args=False), self.critic(z).squeeze(-1)


@torch.no_grad()
def collect(agent, camera, length):
    rollout = Rollout()
    frame = camera.frame()
    for _ in range(length):
        policy, _ = agent(frame)
        action = policy.sample()
        after = camera.frame()
        rollout.add(frame, action, (after - frame).abs().mean((1, 2, 3)))
        frame = after
    return rollout


def learn(agent, optimizer, rollout):
    goals = rollout.goals()
    for moment, goal in zip(rollout.moments, goals):
        policy, value = agent(moment.frame)
        advantage = (goal - value).detach()
        loss = -(policy.log_prob(moment.action) * advantage).mean()
        loss = loss + 0.5 * F.mse_loss(value, goal) - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    camera = Camera(robots=160)
    agent = Agent().to(device)
    optimizer = torch.optim.Adam(agent.parameters(), 3e-4)
    for update in range(25):
        loss = learn(agent, optimizer, collect(agent, camera, length=8))
        if update % 5 == 0:
            print('update', update, f'loss {loss:.4f}', flush=True)


main()
