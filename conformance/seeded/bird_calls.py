"""Bird call classification from spectrograms, with class activation maps of one batch per epoch."""
import argparse
import functools

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

device = 'cuda'


class GradCam:
    """Class activation maps of one layer. Use as a context manager: the hooks live as long as the block."""

    def __init__(self, layer):
        self.layer = layer
        self.maps, self.grads = [], []
        self.handles = []

    def __enter__(self):
        self.handles = [
            self.layer.register_forward_hook(self._forward),
            self.layer.register_full_backward_hook(self._backward)]
        return self

    def __exit__(self, *exc):
        self.handles.clear()

    def _forward(self, layer, inputs, output):
        self.maps.append(output.detach())

    def _backward(self, layer, grad_in, grad_out):
        self.grads.append(grad_out[0].mean((2, 3)))

    def compute(self):
        cam = (self.maps[-1] * self.grads[-1][..., None, None]).sum(1)
        return F.relu(cam).cpu()


class Mixer:
    """Mixup of spectrograms, as a callable that a partial configures."""

    def __call__(self, x, y, alpha, gen):
        lam = float(torch.distributions.Beta(alpha, alpha).sample())
        order = torch.randperm(x.size(0), generator=gen)
        return lam * x + (1 - lam) * x[order], y, y[order], lam


def spectrograms(n, batch, gen):
    for _ in range(n):
        yield torch.rand(batch, 1, 128, 1024, generator=gen), torch.randint(182, (batch,), generator=gen)


def explain(model, x):
    model.zero_grad()
    with GradCam(model.layer2) as cam:
        model(x).amax(1).sum().backward()
        heat = cam.compute()
    model.zero_grad()
    return heat


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--epochs', type=int, default=4)
    ap.add_argument('--steps', type=int, default=28)
    ap.add_argument('--batch', type=int, default=24)
    args = ap.parse_args()
    gen = torch.Generator().manual_seed(11)
    mix = functools.partial(Mixer(), alpha=0.4, gen=gen)
    model = torchvision.models.resnet18(weights=None, num_classes=182).to(device)
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(args.epochs):
        model.train()
        for x, y in spectrograms(args.steps, args.batch, gen):
            x, ya, yb, lam = mix(x, y)
            x, ya, yb = x.to(device).expand(-1, 3, -1, -1), ya.to(device), yb.to(device)
            out = model(x)
            loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        heat = explain(model, x[:8])
        print(f'epoch {epoch} loss {loss.item():.3f} map {tuple(heat.shape)}')


if __name__ == '__main__':
    main()
