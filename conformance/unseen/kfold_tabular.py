"""5-fold CV for the tabular challenge, ensemble of the folds at the end."""
import random
import torch
import torch.nn as nn

K = 5
N, FEATS = 40_000, 512
EPOCHS = 3
BS = 4096


class MLP(nn.Module):
    def __init__(self, width=12288, depth=3):
        super().__init__()
        layers = [nn.Linear(FEATS, width), nn.SiLU()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.SiLU()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def make_folds(n, k):
    idx = list(range(n))
    random.Random(42).shuffle(idx)
    return [idx[i::k] for i in range(k)]


X = torch.randn(N, FEATS)
y = torch.randn(N)
folds = make_folds(N, K)
models = {}
scores = {}

for k in range(K):
    val_idx = torch.tensor(folds[k])
    train_idx = torch.tensor([i for j in range(K) if j != k for i in folds[j]])
    with torch.device("cuda"):
        model = MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for epoch in range(EPOCHS):
        for s in range(0, len(train_idx), BS):
            sel = train_idx[s:s + BS]
            xb, yb = X[sel].cuda(), y[sel].cuda()
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        preds = torch.cat([model(X[val_idx[s:s + BS]].cuda()).cpu() for s in range(0, len(val_idx), BS)])
    scores[k] = nn.functional.mse_loss(preds, y[val_idx]).item()
    models[k] = {"model": model, "optimizer": optimizer, "score": scores[k]}
    print(f"fold {k}: rmse {scores[k] ** 0.5:.4f}")

# ensemble on the test set, best three folds
best = sorted(scores, key=scores.get)[:3]
X_test = torch.randn(5000, FEATS)
with torch.no_grad():
    ens = sum(models[k]["model"].cuda()(X_test.cuda()).cpu() for k in best) / len(best)
print("ensemble", ens.shape, "cv", sum(scores.values()) / K)
