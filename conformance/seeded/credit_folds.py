# 8-fold cross-validation of the credit scoring net, learning-rate curves are plotted at the end
import torch
import torch.nn as nn
import torch.nn.functional as F

FOLDS = 8
EPOCHS = 2
COLUMNS = 240
schedules = {}
scores = []


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return x + self.b(F.relu(self.a(self.norm(x))))


def make_net(width=3072, blocks=2):
    return nn.Sequential(nn.Linear(COLUMNS, width), *[Residual(width) for _ in range(blocks)], nn.Linear(width, 1))


def sample(rows):
    return torch.randn(rows, COLUMNS, device="cuda"), torch.zeros(rows, 1, device="cuda")


def run_fold(fold):
    with torch.device("cuda"):
        net = make_net()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=EPOCHS * 2)
    rates = []
    for epoch in range(EPOCHS):
        net.train()
        for _ in range(2):
            x, y = sample(2048)
            loss = F.binary_cross_entropy_with_logits(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            rates.append(schedule.get_last_lr()[0])
            schedule.step()
    schedules[fold] = (rates, schedule)
    net.eval()
    with torch.no_grad():
        x, y = sample(4096)
        return F.binary_cross_entropy_with_logits(net(x), y).item()


for fold in range(FOLDS):
    scores.append(run_fold(fold))
    print(f"fold {fold}: {scores[-1]:.4f}")

print("mean", sum(scores) / FOLDS)
for fold, (rates, _) in schedules.items():
    print(fold, " ".join(f"{rate:.1e}" for rate in rates))
