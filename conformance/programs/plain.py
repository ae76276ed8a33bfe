"""A small transformer, AdamW, three steps of other lengths: what every release of PyTorch 2 has."""

import torch
from layers import Model, step
from tell import tell

torch.manual_seed(0)
model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for steps, length in enumerate((256, 192, 320), start=1):
    step(model, optimizer, torch.randint(0, 8192, (4, length)).cuda())
tell("plain", steps=steps)
