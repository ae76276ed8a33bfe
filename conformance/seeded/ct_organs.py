"""Organ segmentation in CT volumes: a small residual 3-D U-Net, patches for training, whole volumes for validation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
device = 'cuda'
CLASSES = 6


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv3d(cin, cout, 3, stride, 1), nn.InstanceNorm3d(cout, affine=True),
                         nn.LeakyReLU(0.01, inplace=True))


class UNet3d(nn.Module):
    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        self.stem = conv(1, widths[0])
        self.down = nn.ModuleList(conv(a, b, 2) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(conv(2 * a, a) for a in widths[:-1])
        self.out = nn.Conv3d(widths[0], CLASSES, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for layer in self.down:
            skips.append(layer(skips[-1]))
        y = skips.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge)):
            y = merge(torch.cat([up(y), skips.pop()], 1))
        return self.out(y)


def dice_loss(logits, target):
    p = logits.softmax(1)
    t = F.one_hot(target, CLASSES).permute(0, 4, 1, 2, 3).float()
    inter = (p * t).sum((0, 2, 3, 4))
    return 1 - (2 * inter / (p.sum((0, 2, 3, 4)) + t.sum((0, 2, 3, 4)) + 1e-5)).mean()


class Cases:
    """Patients' volumes of a few sizes, read one by one."""

    def __init__(self, count, seed):
        self.count, self.seed = count, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for i in range(self.count):
            depth = 96 + 16 * int(torch.randint(0, 3, (1,), generator=g))
            yield f'case_{i:03d}', torch.zeros(1, 1, depth, 160, 160), torch.zeros(1, depth, 160, 160, dtype=torch.long)


model = UNet3d().to(device)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=1e-5)
scaler = torch.amp.GradScaler(device)


def train(steps):
    model.train()
    for step in range(steps):
        patch = torch.randn(2, 1, 96, 96, 96).to(device)
        label = torch.randint(0, CLASSES, (2, 96, 96, 96)).to(device)
        with torch.autocast(device, torch.float16):
            logits = model(patch)
            loss = F.cross_entropy(logits, label) + dice_loss(logits.float(), label)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@torch.inference_mode()
def validate(cases):
    model.eval()
    volumes = {}
    truth = {}
    for case, scan, label in cases:
        scan = scan.to(device)
        straight = model(scan).softmax(1)
        mirrored = model(scan.flip(-1)).softmax(1).flip(-1)
        volumes[case] = (straight + mirrored) / 2
        truth[case] = label
    scores = []
    for case, p in volumes.items():
        guess = p.argmax(1).cpu()
        hit = (guess == truth[case]).float().mean()
        scores.append(hit.item())
    return sum(scores) / len(scores)


for epoch in range(1):
    train(6)
    score = validate(Cases(28, seed=5))
    print(f'epoch {epoch}: mean agreement {score:.4f}', flush=True)
