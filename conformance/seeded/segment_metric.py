import torch
import torch.nn as nn
import torch.nn.functional as F

from note import note, size_of


class DiceMetric:
    """Keeps predictions and targets until compute(), like the list states of torchmetrics."""

    def __init__(self, num_classes):
        self.num_classes = num_classes
        self._states = {"preds": [], "target": []}

    def update(self, preds, target):
        self._states["preds"].append(preds)
        self._states["target"].append(target)
        note(size_of(self._states["preds"]))

    def compute(self):
        scores = []
        for p, t in zip(self._states["preds"], self._states["target"]):
            p = p.argmax(1)
            scores.append((2 * (p == t).float().mean()))
        return torch.stack(scores).mean()

    def reset(self):
        for v in self._states.values():
            v.clear()


class LitSegmenter(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(24, classes, 1))
        self.metrics = {"val_dice": DiceMetric(classes)}

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.metrics["val_dice"].update(self.net(x).softmax(1), y)

    def on_validation_epoch_end(self):
        return {name: m.compute() for name, m in self.metrics.items()}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class MiniTrainer:
    def __init__(self, max_epochs, limit_train, limit_val):
        self.max_epochs, self.limit_train, self.limit_val = max_epochs, limit_train, limit_val

    def loader(self, n):
        for i in range(n):
            yield torch.rand(8, 3, 256, 256, device="cuda"), torch.zeros(8, 256, 256, dtype=torch.long, device="cuda")

    def fit(self, module):
        module.cuda()
        opt = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            module.train()
            for i, batch in enumerate(self.loader(self.limit_train)):
                loss = module.training_step(batch, i)
                opt.zero_grad()
                loss.backward()
                opt.step()
            module.eval()
            with torch.no_grad():
                for i, batch in enumerate(self.loader(self.limit_val)):
                    module.validation_step(batch, i)
                logs = module.on_validation_epoch_end()
            print("epoch", epoch, sorted(logs))


MiniTrainer(max_epochs=8, limit_train=6, limit_val=36).fit(LitSegmenter())
