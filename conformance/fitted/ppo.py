"""PPO on pictures: the rollout is computed with its graphs, which nothing needs."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(),
                                  nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.actions, self.value = nn.Linear(512, 6), nn.Linear(512, 1)

    def forward(self, pictures):
        features = self.body(pictures)
        return self.actions(features), self.value(features)


policy = Policy().cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=2.5e-4)
for update in range(2):
    policy.eval()
    rollout = []
    for _ in range(64):
        pictures = torch.randn(256, 4, 84, 84).cuda()
        logits, value = policy(pictures)
        rollout.append((pictures.cpu(), logits.argmax(1), value))
    policy.train()
    for pictures, actions, old in rollout[:4]:
        logits, value = policy(pictures.cuda())
        loss = F.cross_entropy(logits, actions) + F.mse_loss(value, old.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
