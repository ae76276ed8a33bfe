"""A validation that collects one of a model's outputs on the GPU."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 21, 3, padding=1))

    def forward(self, images):
        logits = self.layers(images)
        return {"logits": logits, "scores": logits.mean((2, 3))}


torch.manual_seed(0)
model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(3):
    images, labels = torch.randn(4, 3, 256, 256).cuda(), torch.zeros(4, 256, 256, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(images)["logits"], labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
masks = []
with torch.no_grad():
    for step in range(60):
        images = torch.randn(4, 3, 256, 256).cuda()
        output = model(images)
        masks.append(output["logits"])
print(len(masks), "masks")
