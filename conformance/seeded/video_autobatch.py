import functools
import sys

import torch
import torch.nn as nn
from torchvision.models.video import r3d_18


def halve_on_oom(minimum=4):
    """Runs fn(..., batch_size=n) and tries again with half as much when the card is too small for it."""
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args, batch_size, **kwargs):
            if batch_size < minimum:
                raise RuntimeError(f'no batch size of {minimum} or more fits')
            try:
                return fn(*args, batch_size=batch_size, **kwargs)
            except torch.cuda.OutOfMemoryError:
                print(f'batch size {batch_size} does not fit', file=sys.stderr)
                torch.cuda.empty_cache()
                if batch_size // 2 < minimum:
                    raise
                return wrapper(*args, batch_size=batch_size // 2, **kwargs)
        return wrapper
    return decorate


class ClipDataset(torch.utils.data.Dataset):
    def __init__(self, n, frames=16, size=112):
        g = torch.Generator().manual_seed(11)
        self.pool = torch.randint(0, 256, (16, 3, frames, size, size), dtype=torch.uint8, generator=g)
        self.labels = torch.randint(0, 101, (n,), generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.pool[i % 16], self.labels[i]


class ActionRecognizer(nn.Module):
    def __init__(self, n_classes=101):
        super().__init__()
        self.backbone = r3d_18()
        self.backbone.fc = nn.Sequential(nn.Dropout(0.5), nn.Linear(512, n_classes))
        self.register_buffer('mean', torch.tensor([0.432, 0.395, 0.376]).view(1, 3, 1, 1, 1))
        self.register_buffer('std', torch.tensor([0.228, 0.221, 0.217]).view(1, 3, 1, 1, 1))

    def forward(self, clips):
        x = (clips.float() / 255 - self.mean) / self.std
        return self.backbone(x)


@halve_on_oom(minimum=4)
def train(model, dataset, steps, *, batch_size):
    accumulate = max(1, 64 // batch_size)
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    model.train()
    optimizer.zero_grad()
    for step, (clips, labels) in enumerate(loader):
        logits = model(clips.cuda())
        loss = criterion(logits, labels.cuda())
        (loss / accumulate).backward()
        if (step + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(f'step {step + 1}: loss {loss.item():.3f}')
        if step + 1 == steps:
            break
    return batch_size


def main():
    torch.manual_seed(0)
    model = ActionRecognizer().cuda()
    used = train(model, ClipDataset(256), steps=16, batch_size=64)
    print('trained with batch size', used)


if __name__ == '__main__':
    main()
