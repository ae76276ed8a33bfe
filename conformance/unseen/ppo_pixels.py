import argparse
from collections import namedtuple
import torch
import torch.nn as nn
from torch.distributions import Categorical

Transition = namedtuple("Transition", "obs action logp value reward done")


class FakeVecEnv:
    """stands for 768 procgen/atari envs; frames come as uint8 like gym gives them"""

    def __init__(self, n, n_actions):
        self.n, self.n_actions, self.t = n, n_actions, 0
        self.frames = torch.randint(0, 255, (n, 4, 84, 84), dtype=torch.uint8)

    def reset(self):
        return self.frames

    def step(self, a):
        self.t += 1
        return self.reset(), torch.rand(self.n), torch.zeros(self.n)


class ActorCritic(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                                  nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.pi, self.v = nn.Linear(512, n_actions), nn.Linear(512, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h), validate_args=False), self.v(h).squeeze(-1)


class PPO:
    def __init__(self, env, args):
        self.env, self.args = env, args
        self.net = ActorCritic(env.n_actions).to("cuda")
        self.opt = torch.optim.Adam(self.net.parameters(), 2.5e-4, eps=1e-5)
        self.rollouts = []
        self.obs = env.reset()

    @torch.no_grad()
    def collect(self):
        for _ in range(self.args.horizon):
            obs = self.obs.to("cuda").float() / 255.0
            dist, value = self.net(obs)
            action = dist.sample()
            nxt, reward, done = self.env.step(action)
            self.rollouts.append(Transition(obs, action, dist.log_prob(action), value,
                                            reward.to("cuda"), done.to("cuda")))
            self.obs = nxt

    def update(self):
        batch = self.rollouts[-self.args.horizon:]
        returns = torch.zeros_like(batch[-1].value)
        rets = []
        for tr in reversed(batch):
            returns = tr.reward + 0.99 * returns * (1 - tr.done)
            rets.insert(0, returns)
        for _ in range(self.args.ppo_epochs):
            for tr, ret in zip(batch[::4], rets[::4]):
                dist, value = self.net(tr.obs)
                adv = ret - tr.value
                ratio = (dist.log_prob(tr.action) - tr.logp).exp()
                loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean() \
                    + 0.5 * (ret - value).pow(2).mean() - 0.01 * dist.entropy().mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
        return loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--num-envs", type=int, default=768)
    ap.add_argument("--horizon", type=int, default=16)
    ap.add_argument("--updates", type=int, default=14)
    ap.add_argument("--ppo-epochs", type=int, default=1)
    args = ap.parse_args()
    agent = PPO(FakeVecEnv(args.num_envs, 6), args)
    for u in range(args.updates):
        agent.collect()
        loss = agent.update()
        if u % 2 == 0:
            print(f"update {u} loss {loss:.3f} frames {(u + 1) * args.horizon * args.num_envs}")


if __name__ == "__main__":
    main()
