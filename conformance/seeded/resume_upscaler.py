"""Resume training of a super-resolution transformer from the last checkpoint on disk."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device('cuda')


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv2d(width, width, 5, padding=2, groups=width // 32)
        self.norm = nn.GroupNorm(8, width)
        self.wide, self.narrow = nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, width, 1)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.wide(self.norm(self.mix(x)))))


class Upscaler(nn.Module):
    def __init__(self, width=1536, stages=11):
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.stages = nn.Sequential(*[Stage(width) for _ in range(stages)])
        self.leave = nn.Sequential(nn.Conv2d(width, 3 * 16, 3, padding=1), nn.PixelShuffle(4))

    def forward(self, x):
        return self.leave(self.stages(self.enter(x)))


def write_checkpoint(path):
    """What the night job leaves behind."""
    torch.manual_seed(0)
    net = Upscaler()
    weights = net.state_dict()
    torch.save({'model': weights, 'ema': {k: v.clone() for k, v in weights.items()}, 'step': 120_000}, path)


def load_checkpoint(path, model):
    checkpoint = torch.load(path, map_location=device)
    model.load_state_dict(checkpoint['model'])
    return checkpoint


def train(path, steps=10, batch=4):
    model = Upscaler().to(device)
    checkpoint = load_checkpoint(path, model)
    start = checkpoint['step']
    print('resuming at step', start, flush=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)
    for step in range(start, start + steps):
        high = torch.rand(batch, 3, 64, 64).to(device)
        low = F.avg_pool2d(high, 4)
        loss = F.l1_loss(model(low), high)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(step, f'{loss.item():.4f}', flush=True)
    # the running average goes on from where it was
    ema = {k: v.to('cpu') for k, v in checkpoint['ema'].items()}
    for name, value in model.state_dict().items():
        ema[name].lerp_(value.cpu(), 0.001)
    print('averaged', len(ema), 'tensors')


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, 'last.pt')
        write_checkpoint(file)
        train(file)
