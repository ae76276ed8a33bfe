"""Forecast road-sensor speeds with a two-layer GRU, trained by truncated backprop through time."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(7)
device = 'cuda'

SENSORS = 512          # each sensor is one row of the batch
FEATURES = 32
HIDDEN = 1024
CHUNK = 16
CHUNKS = 20
EPOCH_LEN = CHUNK * CHUNKS

rng = np.random.default_rng(7)
series = rng.normal(size=(EPOCH_LEN + 1, SENSORS, FEATURES)).astype(np.float32)
series = torch.from_numpy(series)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(FEATURES, HIDDEN)
        self.cell_a = nn.GRUCell(HIDDEN, HIDDEN)
        self.cell_b = nn.GRUCell(HIDDEN, HIDDEN)
        self.readout = nn.Sequential(nn.Linear(HIDDEN, 256), nn.ReLU(), nn.Linear(256, FEATURES))

    def forward(self, x, state):
        a, b = state
        x = F.relu(self.proj(x))
        a = self.cell_a(x, a)
        b = self.cell_b(a, b)
        return self.readout(b), (a, b)

    def start(self, rows):
        weight = self.readout[0].weight
        return weight.new_zeros(rows, HIDDEN), weight.new_zeros(rows, HIDDEN)


model = Forecaster().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)

for epoch in range(2):
    state = model.start(SENSORS)
    running, chunks = 0.0, 0
    optimizer.zero_grad()
    for begin in range(0, EPOCH_LEN, CHUNK):
        window = series[begin:begin + CHUNK + 1].to(device, non_blocking=True)
        losses = []
        for t in range(CHUNK):
            pred, state = model(window[t], state)
            losses.append(F.smooth_l1_loss(pred, window[t + 1]))
        loss = torch.stack(losses).mean()

        # without retain_graph this dies at the second chunk with "backward through the graph a second time"
        (loss / CHUNKS).backward(retain_graph=True)

        running += loss.item()
        chunks += 1
        if chunks % 5 == 0:
            print(f'epoch {epoch} chunk {chunks}: {running / chunks:.4f}', flush=True)
    # one update for each pass over the day
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    print(f'epoch {epoch} done, lr {scheduler.get_last_lr()[0]:.2e}')
