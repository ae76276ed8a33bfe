"""Deformable registration of chest scans: a 3-D network in checkpointed blocks, gradients over four pairs."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

device = "cuda"
torch.manual_seed(9)
SIDE = 64


class Stage(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(a, b, 3, stride, 1), nn.InstanceNorm3d(b), nn.LeakyReLU(0.2),
                                 nn.Conv3d(b, b, 3, 1, 1), nn.LeakyReLU(0.2))

    def forward(self, x):
        if self.training:
            return checkpoint(self.net, x, use_reentrant=False)
        return self.net(x)


class Warper(nn.Module):
    def __init__(self, w=16):
        super().__init__()
        self.e1, self.e2, self.e3 = Stage(2, w), Stage(w, 2 * w, 2), Stage(2 * w, 4 * w, 2)
        self.d2, self.d1 = Stage(6 * w, 2 * w), Stage(3 * w, w)
        self.flow = nn.Conv3d(w, 3, 3, 1, 1)

    def forward(self, moving, fixed):
        a = self.e1(torch.cat([moving, fixed], 1))
        b = self.e2(a)
        c = self.e3(b)
        c = F.interpolate(c, scale_factor=2)
        b = self.d2(torch.cat([c, b], 1))
        b = F.interpolate(b, scale_factor=2)
        return self.flow(self.d1(torch.cat([b, a], 1)))


def warp(image, flow, grid):
    return F.grid_sample(image, grid + flow.permute(0, 2, 3, 4, 1), align_corners=False)


def smoothness(flow):
    return sum(flow.diff(dim=d).square().mean() for d in (2, 3, 4))


class Pairs:
    """Scans stay in host memory; a pair at a time is sent."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(5)
        self.scans = [torch.rand(1, 1, SIDE, SIDE, SIDE, generator=g) for _ in range(n)]

    def __iter__(self):
        for k in range(len(self.scans) - 1):
            yield self.scans[k].to(device, non_blocking=True), self.scans[k + 1].to(device, non_blocking=True)


net = Warper().to(device)
opt = torch.optim.Adam(net.parameters(), 1e-3)
theta = torch.eye(3, 4, device=device).unsqueeze(0)
grid = F.affine_grid(theta, (1, 1, SIDE, SIDE, SIDE), align_corners=False)
pairs, accumulate = Pairs(13), 4
log = []
for epoch in range(2):
    net.train()
    for k, (moving, fixed) in enumerate(pairs, 1):
        flow = net(moving, fixed)
        loss = F.mse_loss(warp(moving, flow, grid), fixed) + 0.1 * smoothness(flow)
        (loss / accumulate).backward()
        log.append(loss.item())
        if k % accumulate == 0:
            opt.step()
            opt.zero_grad(set_to_none=True)
    net.eval()
    folds = []
    with torch.no_grad():
        for moving, fixed in pairs:
            flow = net(moving, fixed)
            folds.append((flow.diff(dim=2)[:, 0] < -1).float().mean().item())
    print(f"epoch {epoch} loss {sum(log[-12:]) / 12:.4f} folds {max(folds):.4f}")
torch.save(net.state_dict(), "/dev/null")
