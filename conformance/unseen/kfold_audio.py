"""Five-fold cross validation of an audio tagger on log-mel patches."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, mels=128, frames=512, width=1792, depth=5, heads=16, tags=200):
        super().__init__()
        self.patch = nn.Conv2d(1, width, (mels, 16), (mels, 16))
        self.position = nn.Parameter(torch.randn(1, frames // 16, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, tags)

    def forward(self, spec):
        x = self.patch(spec).flatten(2).transpose(1, 2) + self.position
        return self.head(self.encoder(x).mean(1))


class Callback:
    def on_epoch_end(self, model, epoch, score):
        pass


class EarlyStopping(Callback):
    def __init__(self, patience=3):
        self.patience, self.bad, self.best = patience, 0, None

    def on_epoch_end(self, model, epoch, score):
        if self.best is None or score < self.best:
            self.best, self.bad = score, 0
        else:
            self.bad += 1


class Checkpointer(Callback):
    """Weights by epoch; best() is restored before the fold is tested."""

    def __init__(self):
        self.epochs = []

    def on_epoch_end(self, model, epoch, score):
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.epochs.append((score, epoch, weights))

    def best(self):
        return min(self.epochs, key=lambda item: item[:2])[2]


def batches(count, size, tags=200):
    for _ in range(count):
        yield torch.randn(size, 1, 128, 512, device="cuda"), torch.zeros(size, tags, device="cuda")


def run_fold(fold, epochs=20):
    torch.manual_seed(fold)
    model = Tagger().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    checkpointer = Checkpointer()
    callbacks = [EarlyStopping(), checkpointer]
    for epoch in range(epochs):
        model.train()
        for spec, target in batches(2, 24):
            loss = F.binary_cross_entropy_with_logits(model(spec), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            score = sum(F.binary_cross_entropy_with_logits(model(s), t).item() for s, t in batches(1, 24))
        for callback in callbacks:
            callback.on_epoch_end(model, epoch, score)
        print(f"fold {fold} epoch {epoch} score {score:.4f}", flush=True)
    model.load_state_dict(checkpointer.best())
    return score


results = [run_fold(fold) for fold in range(5)]
print("mean", sum(results) / len(results))
