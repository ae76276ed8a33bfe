"""Cross validation of an audio tagger. Each fold starts from scratch, only the scores are kept."""
import torch
import torch.nn as nn


class AudioTagger(nn.Module):
    def __init__(self, tags=50, c=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(c, 2 * c, 3, padding=1), nn.BatchNorm2d(2 * c), nn.ReLU(), nn.AdaptiveMaxPool2d(1),
            nn.Flatten(), nn.Linear(2 * c, tags))

    def forward(self, spec):
        return self.net(spec)


def run_fold(k, n_train=10, n_val=4, bs=160):
    model = AudioTagger().cuda()
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    bce = nn.BCEWithLogitsLoss()
    running = 0.0
    for _ in range(n_train):
        spec = torch.randn(bs, 1, 96, 256).cuda()
        tags = torch.rand(bs, 50).round().cuda()
        loss = bce(model(spec), tags)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for _ in range(n_val):
            spec = torch.randn(bs, 1, 96, 256).cuda()
            total += bce(model(spec), torch.rand(bs, 50).round().cuda()).item()
    return running / n_train, total / n_val


results = {}
for fold in range(4):
    results[fold] = run_fold(fold)
    print(f"fold {fold}: train {results[fold][0]:.4f} val {results[fold][1]:.4f}")
print("mean", sum(v for _, v in results.values()) / len(results))
