import time

import torch
import torch.nn as nn
import torch.optim as optim
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, Dataset
from torchvision import models

torch.manual_seed(0)
device = torch.device("cuda:0")


class Moths(Dataset):
    """Stand-in for the light-trap photographs; a split has its own seed."""

    def __init__(self, n, split, side=160):
        g = torch.Generator().manual_seed(len(split))
        self.images = torch.rand(12, 3, side, side, generator=g)
        self.labels = torch.randint(0, 40, (n,), generator=g)
        self.split = split

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i % 12]
        if self.split == "train" and i % 2:
            image = image.flip(-1)
        return image, self.labels[i]


sets = {"train": Moths(384, "train"), "val": Moths(512, "val")}
loaders = {k: DataLoader(v, batch_size=32, shuffle=k == "train") for k, v in sets.items()}
sizes = {k: len(v) for k, v in sets.items()}


def train_model(model, criterion, optimizer, scheduler, num_epochs=3):
    since = time.time()
    best_weights = {k: v.cpu() for k, v in model.state_dict().items()}
    best_acc = 0.0

    for epoch in range(num_epochs):
        print(f"Epoch {epoch}/{num_epochs - 1}")
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()

            running_loss = 0.0
            running_corrects = 0
            for inputs, labels in loaders[phase]:
                inputs = inputs.to(device)
                labels = labels.to(device)
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase != "valid"):
                    outputs = model(inputs)
                    _, preds = torch.max(outputs, 1)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss * inputs.size(0)
                running_corrects += torch.sum(preds == labels)
            if phase == "train":
                scheduler.step()

            epoch_loss = float(running_loss) / sizes[phase]
            epoch_acc = running_corrects.double().item() / sizes[phase]
            print(f"{phase} loss {epoch_loss:.4f} acc {epoch_acc:.4f}")
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_weights = {k: v.cpu() for k, v in model.state_dict().items()}

    print(f"done in {time.time() - since:.0f} s, best {best_acc:.4f}")
    model.load_state_dict(best_weights)
    return model


net = models.densenet121(weights=None)
net.classifier = nn.Linear(net.classifier.in_features, 40)
net = net.to(device)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
scheduler = lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
train_model(net, criterion, optimizer, scheduler)
