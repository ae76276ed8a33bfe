"""Token tagger with torchmetrics-like metric objects."""
import torch
import torch.nn as nn


class Metric:
    def __init__(self):
        self.preds, self.target = [], []

    def update(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def reset(self):
        self.preds, self.target = [], []


class AveragePrecision(Metric):
    """needs all scores at the end, like torchmetrics without thresholds"""

    def compute(self):
        hits = 0.0
        n = 0
        for p, t in zip(self.preds, self.target):
            hits += (p.argmax(-1) == t).float().sum().item()
            n += t.numel()
        return hits / n


class Tagger(nn.Module):
    def __init__(self, vocab=5000, d=256, tags=1024):
        super().__init__()
        self.e = nn.Embedding(vocab, d)
        enc = nn.TransformerEncoderLayer(d, 8, 1024, batch_first=True, dropout=0.1)
        self.enc = nn.TransformerEncoder(enc, 3, enable_nested_tensor=False)
        self.cls = nn.Linear(d, tags)

    def forward(self, x):
        return self.cls(self.enc(self.e(x)))


def batches(n, bs=32, length=256):
    for _ in range(n):
        yield torch.randint(0, 5000, (bs, length)).cuda(), torch.randint(0, 1024, (bs, length)).cuda()


def run():
    model = Tagger().cuda()
    opt = torch.optim.Adam(model.parameters(), 1e-4)
    val_ap = AveragePrecision()
    best = 0
    for epoch in range(12):
        model.train()
        for x, y in batches(5):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            for x, y in batches(20, bs=128):
                val_ap.update(model(x).softmax(-1), y)
        ap = val_ap.compute()
        best = max(best, ap)
        print("epoch", epoch, "train loss", round(loss.item(), 4), "val ap", round(ap, 4))


if __name__ == "__main__":
    run()
