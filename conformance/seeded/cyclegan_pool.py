"""CycleGAN style training with an image history buffer (50 images)."""
import random

import torch
import torch.nn as nn


class ImagePool:
    def __init__(self, pool_size):
        self.pool_size = pool_size
        self.images = []

    def query(self, images):
        out = []
        for image in images:
            image = image.detach().unsqueeze(0).clone()
            if len(self.images) < self.pool_size:
                self.images.append(image)
                out.append(image)
            elif random.random() > 0.5:
                k = random.randrange(self.pool_size)
                old = self.images[k]
                self.images[k] = image
                out.append(old)
            else:
                out.append(image)
        return torch.cat(out)


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.InstanceNorm2d(o), nn.ReLU(True))


class Net(nn.Module):
    def __init__(self, out_ch):
        super().__init__()
        self.body = nn.Sequential(conv(3, 16), conv(16, 32), conv(32, 16), nn.Conv2d(16, out_ch, 3, padding=1))

    def forward(self, x):
        return self.body(x)


G_ab, G_ba, D_a, D_b = [Net(c).cuda() for c in (3, 3, 1, 1)]
opt_g = torch.optim.Adam(list(G_ab.parameters()) + list(G_ba.parameters()), lr=2e-4)
opt_d = torch.optim.Adam(list(D_a.parameters()) + list(D_b.parameters()), lr=2e-4)
pools = {"a": ImagePool(50), "b": ImagePool(50)}
losses = {"G": [], "D": []}

for step in range(20):
    a = torch.rand(4, 3, 256, 256, device="cuda")
    b = torch.rand(4, 3, 256, 256, device="cuda")
    fake_b, fake_a = G_ab(a), G_ba(b)
    loss_g = ((D_b(fake_b) - 1) ** 2).mean() + ((D_a(fake_a) - 1) ** 2).mean()
    loss_g = loss_g + 10 * ((G_ba(fake_b) - a).abs().mean() + (G_ab(fake_a) - b).abs().mean())
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    loss_d = 0
    for name, D, real, fake in (("a", D_a, a, fake_a), ("b", D_b, b, fake_b)):
        loss_d = loss_d + ((D(real) - 1) ** 2).mean() + (D(pools[name].query(fake)) ** 2).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    losses["G"].append(loss_g.detach())
    losses["D"].append(loss_d.detach())

print(len(losses["G"]), "steps")
