"""accelerate: the same loop on one device or on many, with bf16 and accumulation."""

import torch
from accelerate import Accelerator
from layers import Model
from tell import tell
from torch.utils.data import DataLoader

torch.manual_seed(0)
accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
model = Model()
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(torch.randint(0, 8192, (64, 256)), batch_size=4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
updates = 0
for step, tokens in enumerate(loader):
    with accelerator.accumulate(model):
        loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        updates += accelerator.sync_gradients
    if step == 3:
        break
tell("accelerated", rank=accelerator.process_index, updates=updates)
