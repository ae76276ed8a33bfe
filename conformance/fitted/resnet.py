"""torchvision's ResNet-50 in a plain loop over a DataLoader: batch norm, so that a part of a batch has statistics of its own."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet50

torch.manual_seed(0)
model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = TensorDataset(torch.zeros(64, 3, 224, 224), torch.zeros(64, dtype=torch.long))
loader = DataLoader(data, batch_size=16)
for step, (images, labels) in enumerate(loader, start=1):
    loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
