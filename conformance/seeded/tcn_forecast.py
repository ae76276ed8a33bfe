"""Multi-horizon load forecasting with a temporal convolution network."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.nn.utils.parametrizations import weight_norm


class LoadSeries(Dataset):
    def __init__(self, n, length=512, horizon=24, n_features=16, seed=0):
        rng = np.random.default_rng(seed)
        t = np.arange(n + length + horizon)
        base = np.sin(t[:, None] * 2 * np.pi / (24 * np.arange(1, n_features + 1)))
        self.series = (base + 0.1 * rng.normal(size=base.shape)).astype(np.float32)
        self.n, self.length, self.horizon = n, length, horizon

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = self.series[i:i + self.length].T
        y = self.series[i + self.length:i + self.length + self.horizon, 0]
        return torch.from_numpy(x.copy()), torch.from_numpy(y.copy())


class TemporalBlock(nn.Module):
    def __init__(self, c_in, c_out, dilation, k=3, dropout=0.2):
        super().__init__()
        self.pad = nn.ConstantPad1d(((k - 1) * dilation, 0), 0.0)
        self.conv1 = weight_norm(nn.Conv1d(c_in, c_out, k, dilation=dilation))
        self.conv2 = weight_norm(nn.Conv1d(c_out, c_out, k, dilation=dilation))
        self.drop = nn.Dropout(dropout)
        self.skip = nn.Conv1d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x):
        h = self.drop(torch.relu(self.conv1(self.pad(x))))
        h = self.drop(torch.relu(self.conv2(self.pad(h))))
        return torch.relu(h + self.skip(x))


class TCN(nn.Module):
    def __init__(self, n_features=16, width=128, levels=8, horizon=24):
        super().__init__()
        self.blocks = nn.Sequential(*[
            TemporalBlock(n_features if i == 0 else width, width, 2 ** i) for i in range(levels)])
        self.head = nn.Linear(width, horizon * 3)
        self.horizon = horizon

    def forward(self, x):
        return self.head(self.blocks(x)[:, :, -1]).view(-1, self.horizon, 3)


def pinball(pred, y, quantiles=(0.1, 0.5, 0.9)):
    total = 0
    for i, q in enumerate(quantiles):
        e = y - pred[..., i]
        total = total + torch.max(q * e, (q - 1) * e).mean()
    return total


class Forecaster:
    def __init__(self, device='cuda', lr=1e-3):
        self.device = device
        self.model = TCN().to(device)
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optim, patience=2)

    def run_epoch(self, loader, train):
        self.model.train(train)
        total, n = 0.0, 0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = pinball(self.model(x), y)
            if train:
                self.optim.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optim.step()
                total += loss.item() * len(x)
            else:
                total += loss * len(x)
            n += len(x)
        return total / n

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            tr = self.run_epoch(train_loader, True)
            va = self.run_epoch(val_loader, False)
            self.sched.step(va)
            print(f'epoch {epoch}: train {tr:.4f} val {float(va):.4f}')


if __name__ == '__main__':
    torch.manual_seed(7)
    train_loader = DataLoader(LoadSeries(1280, seed=1), batch_size=64, shuffle=True, drop_last=True)
    val_loader = DataLoader(LoadSeries(1024, seed=2), batch_size=64)
    Forecaster().fit(train_loader, val_loader, epochs=2)
