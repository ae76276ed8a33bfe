# %% [markdown]
# # SimCLR on satellite tiles
# exported from notebook, cells in order

# %%
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import resnet18

device = "cuda"
TEMPERATURE = 0.2

# %%
encoder = resnet18(num_classes=128)
encoder.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))
encoder = encoder.to(device)
opt = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)


# %%
def two_views(batch):
    tiles = torch.rand(batch, 3, 96, 96, device=device)
    flipped = tiles.flip(-1)
    return tiles + 0.1 * torch.randn_like(tiles), flipped * 0.8 + 0.1


def nt_xent(a, b):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.t() / TEMPERATURE
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool, device=device), -1e4)
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(device)
    return F.cross_entropy(sim, target)


# %%
def validate(batches=8):
    encoder.eval()
    summary = {"loss": 0.0, "alignment": 0.0, "uniformity": 0.0}
    for _ in range(batches):
        va, vb = two_views(128)
        a, b = encoder(va), encoder(vb)
        summary["loss"] += nt_xent(a, b) / batches
        na, nb = F.normalize(a), F.normalize(b)
        summary["alignment"] += (na - nb).pow(2).sum(1).mean() / batches
        summary["uniformity"] += torch.pdist(na[:64]).pow(2).mul(-2).exp().mean().log() / batches
    return {k: float(v) for k, v in summary.items()}


# %%
for epoch in range(1):
    encoder.train()
    for it in range(2):
        va, vb = two_views(128)
        loss = nt_xent(encoder(va), encoder(vb))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, validate())
