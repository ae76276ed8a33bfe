import argparse
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from brats_unet3d_lib import DiceCELoss, UNet3D


class Volumes(Dataset):
    """Random patches out of four-channel MR volumes."""

    def __init__(self, n, patch, seed):
        self.rng = np.random.default_rng(seed)
        self.volume = self.rng.normal(size=(4, 155, 160, 160)).astype(np.float32)
        self.mask = self.rng.integers(0, 4, (155, 160, 160)).astype(np.int64)
        self.n, self.patch = n, patch

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        p = self.patch
        z, y, x = (int(self.rng.integers(0, s - p + 1)) for s in self.mask.shape)
        crop = (slice(z, z + p), slice(y, y + p), slice(x, x + p))
        return torch.from_numpy(self.volume[(slice(None),) + crop].copy()), torch.from_numpy(self.mask[crop].copy())


def poly_lr(optimizer, base, step, total):
    for group in optimizer.param_groups:
        group['lr'] = base * (1 - step / total) ** 0.9


def validate(model, loader, classes):
    model.eval()
    inter, union = torch.zeros(classes), torch.zeros(classes)
    with torch.inference_mode():
        for x, y in loader:
            pred = model(x.cuda()).argmax(1).cpu()
            for c in range(classes):
                inter[c] += ((pred == c) & (y == c)).sum()
                union[c] += (pred == c).sum() + (y == c).sum()
    model.train()
    return (2 * inter / union.clamp(min=1)).tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--patch', type=int, default=96)
    parser.add_argument('--batch', type=int, default=2)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--lr', type=float, default=0.01)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = UNet3D().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.99, nesterov=True, weight_decay=3e-5)
    criterion = DiceCELoss(4)
    train_loader = DataLoader(Volumes(args.steps * args.batch, args.patch, 1), batch_size=args.batch)
    val_loader = DataLoader(Volumes(2, args.patch, 2), batch_size=1)

    for step, (x, y) in enumerate(train_loader):
        poly_lr(optimizer, args.lr, step, args.steps)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
        optimizer.step()
        print(f'{step}: {loss.item():.4f}')
    print('dice', validate(model, val_loader, 4))


if __name__ == '__main__':
    main()
