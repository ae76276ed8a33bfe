import torch
import torch.nn as nn
import torch.nn.functional as F


class Double(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv3d(cin, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01, True),
            nn.Conv3d(cout, cout, 3, padding=1), nn.InstanceNorm3d(cout, affine=True), nn.LeakyReLU(0.01, True))


class UNet3D(nn.Module):
    def __init__(self, organs=14, base=32, levels=4):
        super().__init__()
        widths = [base * 2 ** i for i in range(levels)]
        self.down = nn.ModuleList(Double(a, b) for a, b in zip([1] + widths[:-1], widths))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths[-2::-1], widths[:0:-1]))
        self.merge = nn.ModuleList(Double(2 * a, a) for a in widths[-2::-1])
        self.head = nn.Conv3d(base, organs, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool3d(x, 2))
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([up(x), skips.pop()], 1))
        return self.head(x)


def dice_loss(logits, target, organs=14):
    probs = logits.softmax(1).flatten(2)
    one_hot = F.one_hot(target, organs).movedim(-1, 1).flatten(2)
    inter = (probs * one_hot).sum(-1)
    return 1 - (2 * inter / (probs.sum(-1) + one_hot.sum(-1) + 1)).mean()


def patches(count, batch, size):
    for _ in range(count):
        yield (torch.randn(batch, 1, size, size, size, device="cuda"),
               torch.randint(0, 14, (batch, size, size, size), device="cuda"))


def main(epochs=2, batch=4, size=128):
    model = UNet3D().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for volume, organ in patches(10, batch, size):
            logits = model(volume)
            loss = F.cross_entropy(logits, organ) + dice_loss(logits, organ)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 12)
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, total / 10, flush=True)


if __name__ == "__main__":
    main()
