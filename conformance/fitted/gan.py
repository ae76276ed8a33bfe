"""A GAN: two models, two optimizers. What is largest is the optimizer's own step."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def model(inputs, outputs):
    layers = [nn.Linear(inputs, 2048), nn.ReLU()]
    for _ in range(8):
        layers += [nn.Linear(2048, 2048), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(2048, outputs)).cuda()


generator, critic = model(128, 1024), model(1024, 1)
makes = torch.optim.Adam(generator.parameters(), lr=1e-4)
judges = torch.optim.Adam(critic.parameters(), lr=1e-4)
ones, zeros = torch.ones(256, 1).cuda(), torch.zeros(256, 1).cuda()
for step in range(4):
    real, made = torch.randn(256, 1024).cuda(), generator(torch.randn(256, 128).cuda())
    judges.zero_grad()
    loss = F.binary_cross_entropy_with_logits(critic(real), ones)
    loss = loss + F.binary_cross_entropy_with_logits(critic(made.detach()), zeros)
    loss.backward()
    judges.step()
    makes.zero_grad()
    F.binary_cross_entropy_with_logits(critic(made), ones).backward()
    makes.step()
