"""Sweep depth and learning rate of a ViT; each trial starts from a hopeful batch size and halves it as needed."""
import itertools
import json

import torch
import torch.nn.functional as F
from torchvision.models.vision_transformer import VisionTransformer

device = 'cuda'
GRID = {'depth': [6, 12], 'lr': [1e-3, 3e-4]}


def build(depth):
    return VisionTransformer(image_size=128, patch_size=8, num_layers=depth, num_heads=8, hidden_dim=512,
                             mlp_dim=2048, num_classes=100).to(device)


def train(depth, lr, batch, steps=4):
    torch.manual_seed(0)
    model = build(depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    model.train()
    last = 0.0
    for _ in range(steps):
        images = torch.rand(batch, 3, 128, 128).to(device)
        labels = torch.randint(0, 100, (batch,)).to(device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        last = loss.item()
    return {'depth': depth, 'lr': lr, 'batch': batch, 'loss': last}


def fit_to_card(depth, lr, batch, smallest=32):
    try:
        return train(depth, lr, batch)
    except torch.OutOfMemoryError:
        if batch // 2 < smallest:
            raise
        print(f'depth {depth}: batch {batch} is too large, trying {batch // 2}', flush=True)
        torch.cuda.empty_cache()
        return fit_to_card(depth, lr, batch // 2, smallest)


def main():
    results = []
    for depth, lr in itertools.product(GRID['depth'], GRID['lr']):
        result = fit_to_card(depth, lr, batch=512)
        results.append(result)
        print(json.dumps(result), flush=True)
    best = min(results, key=lambda r: r['loss'])
    print('best', json.dumps(best))


if __name__ == '__main__':
    main()
