import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"


def conv_stack(channels):
    for a, b in zip(channels, channels[1:]):
        yield nn.Conv2d(a, b, 3, stride=2, padding=1)
        yield nn.BatchNorm2d(b)
        yield nn.GELU()


class SpectrogramEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(*conv_stack([1, 32, 64, 128]))
        self.time_pool = nn.AdaptiveAvgPool2d((1, None))
        self.proj = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128))

    def forward(self, spec):
        maps = self.trunk(spec)
        pooled = self.time_pool(maps).squeeze(2).mean(-1)
        return F.normalize(self.proj(pooled), dim=-1), maps


def mask(spec, width=24):
    out = spec.clone()
    start = int(torch.randint(0, spec.shape[-1] - width, (1,)))
    out[..., start:start + width] = 0
    return out


def nt_xent(a, b, temperature=0.1):
    z = torch.cat([a, b])
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(-1e4)
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, target)


def collapse_score(maps, window=[], size=8):
    """How alike the feature maps of neighbouring batches are (1 = collapsed)."""
    window.append(maps.detach())
    recent = window[-size:]
    if len(recent) < 2:
        return 0.0
    first = recent[0].mean((2, 3))
    return sum(F.cosine_similarity(first, m.mean((2, 3))).mean().item() for m in recent[1:]) / (len(recent) - 1)


encoder = SpectrogramEncoder().to(DEVICE)
opt = torch.optim.SGD(encoder.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-6)

for step in range(150):
    spec = torch.randn(128, 1, 128, 192, device=DEVICE)
    (za, maps), (zb, _) = encoder(mask(spec)), encoder(mask(spec))
    loss = nt_xent(za, zb)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 2 == 0:
        alike = collapse_score(maps)
    if step % 25 == 24:
        print(f"step {step + 1} loss {loss.item():.3f} alike {alike:.3f}")
