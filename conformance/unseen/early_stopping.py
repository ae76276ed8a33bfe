"""Fine-tuning with early stopping that restores the best weights."""
import copy
import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience = patience
        self.best_score = None
        self.best_model = None
        self.bad = 0
        self.stop = False

    def __call__(self, score, model):
        if self.best_score is None or score >= self.best_score:
            self.best_score = score
            self.best_model = copy.deepcopy(model)
            self.bad = 0
        else:
            self.bad += 1
            self.stop = self.bad >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_model.state_dict())


class Classifier(nn.Module):
    def __init__(self, d=2048, n=10, classes=20):
        super().__init__()
        self.emb = nn.Embedding(32000, d)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(d, 16, 4 * d, 0.0, batch_first=True) for _ in range(n))
        self.out = nn.Linear(d, classes)

    def forward(self, ids):
        x = self.emb(ids)
        for b in self.blocks:
            x = b(x)
        return self.out(x.mean(1))


def evaluate(model, batches):
    model.eval()
    hits = total = 0
    with torch.inference_mode():
        for ids, lab in batches:
            hits += (model(ids).argmax(-1) == lab).sum().item()
            total += len(lab)
    return hits / total


def fake_batches(n, bs, length):
    return [(torch.randint(0, 32000, (bs, length), device="cuda"), torch.randint(0, 20, (bs,), device="cuda"))
            for _ in range(n)]


def main():
    with torch.device("cuda"):
        model = Classifier()
    n = sum(p.numel() for p in model.parameters())
    print(f"{n / 1e6:.0f}M parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    stopper = EarlyStopping()
    train, val = fake_batches(10, 52, 192), fake_batches(4, 16, 192)
    for epoch in range(3):
        model.train()
        for ids, lab in train:
            loss = nn.functional.cross_entropy(model(ids), lab)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        acc = evaluate(model, val)
        print(f"epoch {epoch} loss {loss.item():.3f} val acc {acc:.3f}")
        stopper(acc, model)
        if stopper.stop:
            break
    stopper.restore(model)


if __name__ == "__main__":
    main()
