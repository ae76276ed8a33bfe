"""Stage 1 trains on plentiful coarse labels, stage 2 goes on from its checkpoint with the fine ones."""
import argparse
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import swin_b


def make_loader(n, classes, batch):
    g = torch.Generator().manual_seed(classes)
    x = torch.randn(n, 3, 192, 192, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True)


def build(classes, device):
    model = swin_b(num_classes=classes)
    return model.to(device)


def optimizer_for(model, lr):
    no_decay, decay = [], []
    for name, p in model.named_parameters():
        (no_decay if p.ndim == 1 or 'relative_position' in name else decay).append(p)
    return torch.optim.AdamW([{'params': decay, 'weight_decay': 0.05}, {'params': no_decay, 'weight_decay': 0.0}],
                             lr=lr, fused=True)


def train_epoch(model, loader, optimizer, device, tag):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    model.train()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if i % 4 == 0:
            print(f'{tag} {i}/{len(loader)} loss {loss.item():.4f}')


def stage1(args, path):
    model = build(args.coarse, args.device)
    optimizer = optimizer_for(model, 1e-3)
    train_epoch(model, make_loader(args.batch * 4, args.coarse, args.batch), optimizer, args.device, 'stage 1')
    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': 1, 'args': vars(args)}, path)


def stage2(args, path):
    model = build(args.fine, args.device)
    ckpt = torch.load(path, map_location=args.device, weights_only=True)
    weights = {k: v for k, v in ckpt['model'].items() if not k.startswith('head.')}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    print(f"loaded epoch {ckpt['epoch']} of stage 1, new: {missing}")
    optimizer = optimizer_for(model, 1e-4)
    loader = make_loader(args.batch * 8, args.fine, args.batch)
    for epoch in range(args.epochs):
        train_epoch(model, loader, optimizer, args.device, f'stage 2 epoch {epoch}')
    return model


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--coarse', type=int, default=20)
    parser.add_argument('--fine', type=int, default=200)
    parser.add_argument('--batch', type=int, default=6)
    parser.add_argument('--epochs', type=int, default=1)
    parser.add_argument('--device', default='cuda')
    args = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'stage1.pth')
        stage1(args, path)
        model = stage2(args, path)
    print(sum(p.numel() for p in model.parameters()), 'parameters trained')
