"""torchvision's ResNet-50: convolutions by cuDNN, batch norm, SGD with momentum.

    python resnet50.py [images of a batch [amp] [channels_last]]
"""

import sys

import torch
from tell import tell
from torchvision.models import resnet50

torch.manual_seed(0)
batch = int(sys.argv[1]) if len(sys.argv) > 1 else 32
layout = torch.channels_last if "channels_last" in sys.argv else torch.contiguous_format
model = resnet50().cuda().to(memory_format=layout)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    with torch.autocast("cuda", enabled="amp" in sys.argv):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
tell("resnet50", batches_seen=model.bn1.num_batches_tracked.item())
