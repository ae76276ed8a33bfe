"""Linear probes on intermediate layers: trains the net and a probe per block at the same time."""
import argparse
from collections import defaultdict
import torch
from torch import nn


def get_args():
    a = argparse.ArgumentParser()
    a.add_argument("--width", type=int, default=1024)
    a.add_argument("--depth", type=int, default=8)
    a.add_argument("--batch", type=int, default=8192)
    a.add_argument("--steps", type=int, default=120)
    a.add_argument("--probe-every", type=int, default=2)
    return a.parse_args()


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem = nn.Linear(784, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
                                    for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for l in self.layers:
            x = x + l(x)
        return self.head(x)


class FeatureTap:
    def __init__(self, model):
        self.feats = defaultdict(list)
        self.handles = [layer.register_forward_hook(self._hook(name))
                        for name, layer in model.layers.named_children()]

    def _hook(self, name):
        def fn(module, inputs, output):
            self.feats[name].append(output.detach())
        return fn

    def latest(self, name):
        return self.feats[name][-1]

    def close(self):
        for h in self.handles:
            h.remove()


if __name__ == "__main__":
    args = get_args()
    net = Net(args.width, args.depth).cuda()
    probes = nn.ModuleDict({n: nn.Linear(args.width, 10) for n, _ in net.layers.named_children()}).cuda()
    opt = torch.optim.AdamW(list(net.parameters()) + list(probes.parameters()), lr=1e-3)
    tap = FeatureTap(net)
    for step in range(args.steps):
        x = torch.randn(args.batch, 784, device="cuda")
        y = torch.randint(0, 10, (args.batch,), device="cuda")
        loss = nn.functional.cross_entropy(net(x), y)
        if step % args.probe_every == 0:
            for n, p in probes.items():
                loss = loss + 0.1 * nn.functional.cross_entropy(p(tap.latest(n)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"{step}: {loss.item():.4f}")
    tap.close()
