"""Find the largest batch that fits, then train an image autoencoder with it."""
import functools
import gc

import torch
import torch.nn as nn
import torch.nn.functional as F


def find_executable_batch_size(starting_batch_size=512, minimum=64):
    """Calls the function with half of the batch until it fits."""

    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return attempt(fn, starting_batch_size, args, kwargs)
        return wrapper

    def attempt(fn, batch_size, args, kwargs):
        try:
            return fn(batch_size, *args, **kwargs)
        except RuntimeError as e:
            if "out of memory" not in str(e) or batch_size <= minimum:
                raise
            print(f"batch size {batch_size} does not fit, trying {batch_size // 2}")
            gc.collect()
            torch.cuda.empty_cache()
            return attempt(fn, batch_size // 2, args, kwargs)

    return decorator


class Encoder(nn.Module):
    def __init__(self, width=64, latent=256):
        super().__init__()
        layers, c = [], 3
        for i in range(4):
            w = width * 2 ** min(i, 2)
            layers += [nn.Conv2d(c, w, 3, padding=1), nn.GroupNorm(8, w), nn.SiLU(),
                       nn.Conv2d(w, w, 4, stride=2, padding=1), nn.SiLU()]
            c = w
        self.net = nn.Sequential(*layers)
        self.out = nn.Linear(c * 8 * 8, 2 * latent)

    def forward(self, x):
        mu, logvar = self.out(self.net(x).flatten(1)).chunk(2, -1)
        return mu, logvar


class Decoder(nn.Module):
    def __init__(self, width=64, latent=256):
        super().__init__()
        self.fc = nn.Linear(latent, 4 * width * 8 * 8)
        layers, c = [], 4 * width
        for w in (4 * width, 2 * width, width, width):
            layers += [nn.ConvTranspose2d(c, w, 4, stride=2, padding=1), nn.GroupNorm(8, w), nn.SiLU()]
            c = w
        self.net = nn.Sequential(*layers, nn.Conv2d(c, 3, 3, padding=1))

    def forward(self, z):
        h = self.fc(z)
        return self.net(h.view(len(z), -1, 8, 8))


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = Encoder(), Decoder()

    def forward(self, x):
        mu, logvar = self.enc(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(-1).mean()
        return self.dec(z), kl


def sample_images(n, generator):
    return torch.rand(n, 3, 128, 128, generator=generator)


@find_executable_batch_size(starting_batch_size=1024)
def train(batch_size, model, optimizer, steps=10):
    g = torch.Generator().manual_seed(0)
    for step in range(steps):
        x = sample_images(batch_size, g).cuda()
        recon, kl = model(x)
        rec = F.mse_loss(recon, x)
        loss = rec + 1e-4 * kl
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(f"bs {batch_size} step {step} rec {rec.item():.4f} kl {kl.item():.4f}")
    return batch_size


torch.manual_seed(0)
vae = VAE().cuda()
adam = torch.optim.Adam(vae.parameters(), lr=1e-3)
used = train(vae, adam)
print("trained with batch size", used)
