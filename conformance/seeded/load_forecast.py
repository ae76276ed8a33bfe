"""Electricity load forecasting with a stateful recurrent net, trained window after window over each series."""
import math

import torch
from torch import nn

BATCH, FEATURES, HIDDEN = 4096, 32, 1024
WINDOW, WINDOWS_PER_SERIES, SERIES = 8, 8, 1


class LoadForecaster(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.encode = nn.Linear(features, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.readout = nn.Sequential(nn.Linear(hidden, hidden // 4), nn.ReLU(), nn.Linear(hidden // 4, 1))
        self.state = None

    def reset(self, batch, device):
        self.state = torch.zeros(batch, self.cell.hidden_size, device=device)

    def forward(self, window):
        state, predictions = self.state, []
        for hour in window.unbind(1):
            state = self.cell(torch.tanh(self.encode(hour)), state)
            predictions.append(self.readout(state))
        self.state = state
        return torch.cat(predictions, 1)


def calendar(start, hours, device):
    t = torch.arange(start, start + hours, device=device)
    return torch.stack([torch.sin(2 * math.pi * t / 24), torch.cos(2 * math.pi * t / 24),
                        torch.sin(2 * math.pi * t / 168), torch.cos(2 * math.pi * t / 168)], -1)


def windows_of(series, device):
    for number in range(WINDOWS_PER_SERIES):
        weather = torch.randn(BATCH, WINDOW, FEATURES - 4, device=device)
        times = calendar(number * WINDOW, WINDOW, device).expand(BATCH, -1, -1)
        yield torch.cat([weather, times], -1), torch.randn(BATCH, WINDOW, device=device)


def pinball(prediction, target, quantile=0.7):
    error = target - prediction
    return torch.maximum(quantile * error, (quantile - 1) * error).mean()


def main():
    torch.manual_seed(7)
    device = torch.device("cuda")
    net = LoadForecaster(FEATURES, HIDDEN).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=1e-3)
    for series in range(SERIES):
        net.reset(BATCH, device)
        optimizer.zero_grad(set_to_none=True)
        total = 0.0
        for window, target in windows_of(series, device):
            loss = pinball(net(window), target) / WINDOWS_PER_SERIES
            loss.backward(retain_graph=True)
            total += loss.item()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        print(f"series {series}: pinball {total:.4f}")


if __name__ == "__main__":
    main()
