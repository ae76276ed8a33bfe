"""Traffic speed on a road network: graph convolution over neighbour tables and a GRU, truncated backpropagation."""
import torch
from torch import nn
from torch.nn import functional as F

device = 'cuda'
ROADS, WIDTH, CHUNK = 6000, 128, 12


def road_table(n, degree, gen):
    """The roads that lead into each road."""
    return (torch.arange(n)[:, None] + torch.randint(1, 60, (n, degree), generator=gen)) % n


class GraphGRU(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.gates = nn.Linear(2 * (inputs + width), 2 * width)
        self.cand = nn.Linear(2 * (inputs + width), width)

    def mix(self, road, x):
        return torch.cat([x, x[road].mean(1)], 1)

    def forward(self, road, x, h):
        r, z = torch.sigmoid(self.gates(self.mix(road, torch.cat([x, h], 1)))).chunk(2, 1)
        c = torch.tanh(self.cand(self.mix(road, torch.cat([x, r * h], 1))))
        return z * h + (1 - z) * c


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = GraphGRU(4, WIDTH), nn.Linear(WIDTH, 1)

    def chunk(self, road, xs, h):
        outs = []
        for x in xs:
            h = self.cell(road, x, h)
            outs.append(self.out(h).squeeze(-1))
        return torch.stack(outs), h


gen = torch.Generator().manual_seed(0)
road = road_table(ROADS, 4, gen).to(device)
series = torch.randn(CHUNK * 8 + 1, ROADS, 4, generator=gen)
model = Model().to(device)
opt = torch.optim.RMSprop(model.parameters(), 1e-3)
for epoch in range(2):
    h = torch.zeros(ROADS, WIDTH, device=device)
    total = 0.0
    for start in range(0, CHUNK * 8, CHUNK):
        xs = series[start:start + CHUNK].to(device)
        ys = series[start + 1:start + CHUNK + 1, :, 0].to(device)
        out, h = model.chunk(road, xs, h.detach())
        loss = F.smooth_l1_loss(out, ys)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        total += loss.item()
    print(f'epoch {epoch} loss {total / 8:.4f}')
