import copy
import math

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import wide_resnet50_2

# Snapshot ensembles (Huang et al. 2017): cosine cycles, one member after each
CYCLES = 12
STEPS_PER_CYCLE = 3
BASE_LR = 0.1
BATCH = 16
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_loaders():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(160, 3, 128, 128, generator=g)
    y = torch.randint(0, 100, (160,), generator=g)
    train = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=BATCH, shuffle=True, drop_last=True)
    test = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=BATCH)
    return train, test


def forever(loader):
    while True:
        yield from loader


def cosine(step):
    return BASE_LR / 2 * (math.cos(math.pi * (step % STEPS_PER_CYCLE) / STEPS_PER_CYCLE) + 1)


class Ensemble:
    def __init__(self):
        self.members = []

    def add(self, model):
        member = copy.deepcopy(model)
        member.eval()
        self.members.append(member)

    @torch.no_grad()
    def predict(self, x):
        total = 0
        for member in self.members:
            total = total + member(x).softmax(-1)
        return total / len(self.members)


def main():
    torch.manual_seed(0)
    train, test = make_loaders()
    model = wide_resnet50_2(weights=None, num_classes=100).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=BASE_LR, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    ensemble = Ensemble()
    stream = forever(train)

    for cycle in range(CYCLES):
        model.train()
        running = 0.0
        for i in range(STEPS_PER_CYCLE):
            for group in optimizer.param_groups:
                group["lr"] = cosine(cycle * STEPS_PER_CYCLE + i)
            x, y = next(stream)
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            running += loss.item()
        ensemble.add(model)
        print(f"cycle {cycle:2d} loss {running / STEPS_PER_CYCLE:.4f} members {len(ensemble.members)}")

    hits = 0
    for x, y in test:
        hits += (ensemble.predict(x.to(device)).argmax(-1).cpu() == y).sum().item()
    print("ensemble accuracy", hits / len(test.dataset))


main()
