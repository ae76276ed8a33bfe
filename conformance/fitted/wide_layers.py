"""Wide layers whose weights, gradients and Adam's states fill the card, and whose batches are small."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2048, 2048) for _ in range(8)])
        self.last = nn.Linear(2048, 10)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.last(x)


model = Wide()
model.to("cuda")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
data = TensorDataset(torch.zeros(512, 2048), torch.zeros(512, dtype=torch.long))
for x, y in DataLoader(data, batch_size=128):
    x, y = x.cuda(), y.cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
with torch.no_grad():
    print(float(F.cross_entropy(model(x), y)))
