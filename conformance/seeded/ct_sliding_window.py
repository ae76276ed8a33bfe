import itertools
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
PATCH = (64, 96, 96)


def conv_block(cin, cout):
    return nn.Sequential(
        nn.Conv3d(cin, cout, 3, padding=1, bias=False), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01),
        nn.Conv3d(cout, cout, 3, padding=1, bias=False), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01))


class UNet3D(nn.Module):
    def __init__(self, cin=1, classes=4, widths=(16, 32, 64, 128)):
        super().__init__()
        self.down = nn.ModuleList()
        for w in widths:
            self.down.append(conv_block(cin, w))
            cin = w
        self.up, self.dec = nn.ModuleList(), nn.ModuleList()
        for w in reversed(widths[:-1]):
            self.up.append(nn.ConvTranspose3d(cin, w, 2, stride=2))
            self.dec.append(conv_block(2 * w, w))
            cin = w
        self.head = nn.Conv3d(cin, classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool3d(x, 2))
            skips.append(x)
        skips.pop()
        for up, dec in zip(self.up, self.dec):
            x = dec(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


def dice_ce(logits, target):
    ce = F.cross_entropy(logits, target)
    prob = logits.softmax(1)
    onehot = F.one_hot(target, logits.shape[1]).permute(0, 4, 1, 2, 3).float()
    inter = (prob * onehot).sum((2, 3, 4))
    dice = (2 * inter + 1e-5) / (prob.sum((2, 3, 4)) + onehot.sum((2, 3, 4)) + 1e-5)
    return ce + 1 - dice.mean()


def starts(size, patch, overlap=0.5):
    step = max(int(patch * (1 - overlap)), 1)
    out = list(range(0, size - patch + 1, step))
    if out[-1] != size - patch:
        out.append(size - patch)
    return out


def gaussian(patch):
    axes = [torch.exp(-0.5 * ((torch.arange(p) - (p - 1) / 2) / (p / 8)) ** 2) for p in patch]
    return torch.einsum("i,j,k->ijk", *axes).clamp(min=1e-4)


def predict_volume(net, volume, classes=4):
    """Overlapping patches, Gaussian weighting, as nnU-Net does it."""
    net.eval()
    shape = volume.shape[-3:]
    scores = torch.zeros(1, classes, *shape, device=device)
    norm = torch.zeros(1, 1, *shape, device=device)
    weight = gaussian(PATCH).to(device)
    for corner in itertools.product(*(starts(s, p) for s, p in zip(shape, PATCH))):
        window = tuple(slice(c, c + p) for c, p in zip(corner, PATCH))
        patch = volume[(..., *window)].to(device)
        pred = net(patch).softmax(1)
        scores[(..., *window)] += pred * weight
        norm[(..., *window)] += weight
    return (scores / norm).argmax(1).cpu()


def dice_score(pred, truth, cls):
    a, b = pred == cls, truth == cls
    return (2 * (a & b).sum() / (a.sum() + b.sum()).clamp(min=1)).item()


torch.manual_seed(7)
net = UNet3D().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
cases = [(torch.randn(1, 1, 128, 192, 192), torch.randint(0, 4, (1, 128, 192, 192))) for _ in range(2)]

for epoch in range(2):
    net.train()
    began = time.time()
    for step in range(6):
        vol, seg = cases[step % len(cases)]
        z, y, x = (int(torch.randint(0, s - p + 1, ())) for s, p in zip(vol.shape[-3:], PATCH))
        win = (slice(z, z + PATCH[0]), slice(y, y + PATCH[1]), slice(x, x + PATCH[2]))
        loss = dice_ce(net(vol[(..., *win)].to(device)), seg[(..., *win)].to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
    vol, seg = cases[epoch]
    pred = predict_volume(net, vol)
    print(f"epoch {epoch} loss {loss.item():.3f} dice {[round(dice_score(pred, seg, c), 3) for c in range(1, 4)]} "
          f"{time.time() - began:.1f}s")
