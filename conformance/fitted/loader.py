"""A loop over a DataLoader, whose batch is too large for 3 GiB."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.wide(x)))


model = nn.Sequential(*[Residual(1024) for _ in range(8)], nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
data = TensorDataset(torch.zeros(8192 * 4, 1024), torch.zeros(8192 * 4, dtype=torch.long))
loader = DataLoader(data, batch_size=8192)
for step, (x, y) in enumerate(loader, start=1):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
