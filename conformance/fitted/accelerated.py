"""A loop of accelerate, which prepares the model, the optimizer and the DataLoader."""

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 8, enable_nested_tensor=False)
data = TensorDataset(torch.zeros(256, 256, 256))
optimizer = torch.optim.AdamW(model.parameters())
accelerator = Accelerator()
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=64))
for step, (x,) in enumerate(loader, start=1):
    loss = F.mse_loss(model(x), x)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
