"""5-fold cross-validation of a ConvNeXt on a small medical image set, then an ensemble of the folds."""
import copy
import random

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset
from torchvision.models import convnext_base

SEED = 2024
FOLDS = 5
EPOCHS = 2
DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def folds_of(n, k):
    idx = np.random.permutation(n)
    parts = np.array_split(idx, k)
    for i in range(k):
        yield np.concatenate(parts[:i] + parts[i + 1:]), parts[i]


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    running = 0.0
    for x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    hit = total = 0
    for x, y in loader:
        pred = model(x.to(DEVICE)).argmax(1).cpu()
        hit += (pred == y).sum().item()
        total += len(y)
    return hit / total


def run_fold(data, train_idx, val_idx):
    train_loader = DataLoader(Subset(data, train_idx), batch_size=8, shuffle=True, drop_last=True)
    val_loader = DataLoader(Subset(data, val_idx), batch_size=8)
    model = convnext_base(num_classes=4).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    best_acc, best_weights = -1.0, None
    for epoch in range(EPOCHS):
        loss = train_epoch(model, train_loader, criterion, optimizer)
        acc = accuracy(model, val_loader)
        if acc > best_acc:
            best_acc = acc
            best_weights = copy.deepcopy(model.state_dict())
    return best_acc, best_weights


def main():
    seed_everything(SEED)
    data = TensorDataset(torch.randn(40, 3, 224, 224), torch.randint(0, 4, (40,)))
    results = {}
    for fold, (train_idx, val_idx) in enumerate(folds_of(len(data), FOLDS)):
        acc, weights = run_fold(data, train_idx, val_idx)
        results[fold] = {'acc': acc, 'weights': weights}
        print(f'fold {fold}: acc {acc:.3f}')
    print('cv accuracy', np.mean([r['acc'] for r in results.values()]))

    # ensemble of the folds on the held-out images
    held_out = torch.randn(8, 3, 224, 224, device=DEVICE)
    model = convnext_base(num_classes=4).to(DEVICE).eval()
    probs = 0
    with torch.no_grad():
        for r in results.values():
            model.load_state_dict(r['weights'])
            probs = probs + model(held_out).softmax(1).cpu() / FOLDS
    print(probs.argmax(1).tolist())


if __name__ == '__main__':
    main()
