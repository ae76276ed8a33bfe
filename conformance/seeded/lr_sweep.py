# learning-rate and width sweep in one process; the best setting is reported
import gc
import itertools

import torch
import torch.nn as nn


class Gated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.value(x) * torch.sigmoid(self.gate(x))


def network(width):
    with torch.device("cuda"):
        return nn.Sequential(nn.Linear(64, width), *[Gated(width) for _ in range(4)], nn.Linear(width, 8))


def episode(width, rate, steps=3, rows=16384):
    net = network(width)
    average = torch.optim.swa_utils.AveragedModel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        x, y = torch.randn(rows, 64, device="cuda"), torch.randn(rows, 8, device="cuda")
        loss = nn.functional.smooth_l1_loss(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        average.update_parameters(net)
        losses.append(loss.item())
    with torch.no_grad():
        x, y = torch.randn(rows, 64, device="cuda"), torch.randn(rows, 8, device="cuda")
        final = nn.functional.smooth_l1_loss(average(x), y).item()
    weights = {k: v.cpu() for k, v in average.module.state_dict().items()}
    return final, losses, weights


results = {}
for width, rate in itertools.product((2048, 1024, 1536), (1e-3, 3e-4)):
    final, losses, weights = episode(width, rate)
    results[width, rate] = final, losses[-1], sum(w.numel() for w in weights.values())
    del weights
    gc.collect()
    torch.cuda.empty_cache()
    print(width, rate, final)
best = min(results, key=lambda key: results[key][0])
print("best", best, results[best])
