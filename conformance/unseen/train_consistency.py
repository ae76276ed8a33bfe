import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
device = "cuda"
batch_size = 64
image_size = 192
num_classes = 120
epochs = 5
steps_per_epoch = 40


def block(cin, cout, stride):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


model = nn.Sequential(
    nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
    nn.BatchNorm2d(64),
    nn.ReLU(inplace=True),
    block(64, 64, 1),
    block(64, 128, 2),
    block(128, 256, 2),
    block(256, 512, 2),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(512, num_classes),
).to(device)

optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps_per_epoch)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

best = None
for epoch in range(epochs):
    model.train()
    started = time.time()
    running_loss = 0.0
    running_consistency = 0.0
    for step in range(steps_per_epoch):
        images = torch.randn(batch_size, 3, image_size, image_size, device=device)
        labels = torch.randint(0, num_classes, (batch_size,), device=device)

        logits = model(images)
        loss = criterion(logits, labels)

        # how stable is the prediction under a flip and a shift?
        dx = random.randint(-8, 8)
        flipped = torch.roll(images.flip(-1), shifts=dx, dims=-1)
        consistency = F.mse_loss(model(flipped).softmax(-1), logits.detach().softmax(-1))

        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        scheduler.step()

        running_loss += loss.item()
        running_consistency += consistency

        if step % 5 == 0:
            print(f"epoch {epoch} step {step:3d} loss {running_loss / (step + 1):.4f} "
                  f"lr {scheduler.get_last_lr()[0]:.4f}", flush=True)

    epoch_consistency = (running_consistency / steps_per_epoch).item()
    print(f"epoch {epoch}: consistency {epoch_consistency:.4f}, {time.time() - started:.1f} s")
    if best is None or epoch_consistency < best:
        best = epoch_consistency
