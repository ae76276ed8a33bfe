"""Each step is an object that is in a reference cycle: what it made stays until Python's collector comes by."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


class Step:
    def __init__(self, x):
        self.x = x
        self.again = self.run

    def run(self):
        self.output = model(self.x)
        return self.output.square().mean()


for step in range(30):
    one = Step(torch.zeros(8192, 1024).cuda())
    loss = one.again()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
