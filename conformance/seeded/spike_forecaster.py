"""Electricity load forecasting with wide embeddings of meter ids."""
import torch
from torch import nn
import torch.nn.functional as F


class MeterNet(nn.Module):
    def __init__(self, meters, regions=12, d=768, horizon=24):
        super().__init__()
        self.regions = nn.ModuleList(nn.Embedding(meters // regions, d) for _ in range(regions))
        self.hour = nn.Embedding(168, d)
        self.mix = nn.Sequential(nn.Linear(2 * d + 96, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.quantiles = nn.Linear(1024, 3 * horizon)

    def locate(self, meter):
        # meters come sorted by region, as many from each
        parts = [table(m % table.num_embeddings) for table, m in zip(self.regions, meter.chunk(len(self.regions)))]
        return torch.cat(parts)

    def forward(self, meter, hour, past):
        h = self.mix(torch.cat([self.locate(meter), self.hour(hour), past], -1))
        return self.quantiles(h).view(len(meter), 3, -1)


def pinball(pred, actual, q=(0.1, 0.5, 0.9)):
    total = 0.0
    for i, level in enumerate(q):
        err = actual - pred[:, i]
        total = total + torch.maximum(level * err, (level - 1) * err).mean()
    return total


class Clock:
    def __init__(self, meters, batch):
        self.meters, self.batch = meters, batch

    def sample(self):
        return (torch.randint(0, self.meters, (self.batch,), device="cuda"),
                torch.randint(0, 168, (self.batch,), device="cuda"),
                torch.randn(self.batch, 96, device="cuda"),
                torch.randn(self.batch, 24, device="cuda"))


def build(meters):
    net = MeterNet(meters).cuda()
    regular = torch.optim.Adadelta(net.parameters(), 1.0, rho=0.95, weight_decay=1e-5, foreach=True)
    return net, regular


def main():
    meters = 219_600
    net, opt = build(meters)
    clock = Clock(meters, 2048)
    plateau = torch.optim.lr_scheduler.StepLR(opt, 10, 0.5)
    for step in range(20):
        meter, hour, past, actual = clock.sample()
        loss = pinball(net(meter, hour, past), actual)
        opt.zero_grad()
        loss.backward()
        opt.step()
        plateau.step()
        if step % 5 == 4:
            print(step + 1, loss.item(), plateau.get_last_lr()[0])


main()
