"""A language model of LSTMs, a batch of 64 sequences at a time."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4096, 512)
        self.lstm = nn.LSTM(512, 1024, num_layers=2, batch_first=True)
        self.head = nn.Linear(1024, 4096)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


model = Language().cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader([torch.randint(0, 4096, (257,)) for _ in range(256)], batch_size=64)
for step, ids in enumerate(loader, start=1):
    ids = ids.cuda()
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
