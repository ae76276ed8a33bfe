"""3D U-Net on CT volumes."""
import torch
from torch import nn
import torch.nn.functional as F


def double(i, o):
    return nn.Sequential(
        nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01),
        nn.Conv3d(o, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01))


class UNet3D(nn.Module):
    def __init__(self, organs=14, base=32, depth=4):
        super().__init__()
        widths = [base * 2 ** i for i in range(depth)]
        self.enc = nn.ModuleList(double(i, o) for i, o in zip([1] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(o, i, 2, 2) for i, o in zip(widths, widths[1:]))
        self.dec = nn.ModuleList(double(2 * w, w) for w in widths[:-1])
        self.out = nn.Conv3d(base, organs, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.enc):
            x = block(x if i == 0 else F.max_pool3d(x, 2))
            skips.append(x)
        for up, dec, skip in zip(reversed(self.up), reversed(self.dec), reversed(skips[:-1])):
            x = dec(torch.cat([up(x), skip], 1))
        return self.out(x)


def dice(logits, label, eps=1e-5):
    p = logits.softmax(1)
    hot = F.one_hot(label, p.shape[1]).permute(0, 4, 1, 2, 3).to(p.dtype)
    dims = (0, 2, 3, 4)
    return 1 - ((2 * (p * hot).sum(dims) + eps) / (p.sum(dims) + hot.sum(dims) + eps)).mean()


class Volumes:
    """Grows the crop as training goes on."""
    crops = [(64, 96, 96), (80, 112, 112), (96, 128, 128), (128, 160, 160)]

    def batches(self, stage, n=6, batch=2):
        for _ in range(n):
            shape = self.crops[stage]
            yield (torch.randn(batch, 1, *shape, device="cuda"),
                   torch.zeros(batch, *shape, dtype=torch.long, device="cuda"))


def main():
    net = UNet3D().cuda()
    opt = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.99, nesterov=True)
    volumes = Volumes()
    for stage in range(len(volumes.crops)):
        mean = 0.0
        for image, label in volumes.batches(stage):
            logits = net(image)
            loss = F.cross_entropy(logits, label) + dice(logits, label)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 12)
            opt.step()
            mean += loss.item() / 6
        print("crop", volumes.crops[stage], "loss", round(mean, 4))


if __name__ == "__main__":
    main()
