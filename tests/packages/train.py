"""A training run of PyTorch, as a user writes it: two steps of a small network."""

import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(256, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("trained")
