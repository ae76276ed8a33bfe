"""Early stopping that keeps a record of each epoch: weights, and the optimizer with them."""
import torch
import torch.nn.functional as F
from note import note, size_of
from loop import main
from zoo import mlp


class EarlyStop:
    def __init__(self, patience=50):
        self.patience, self.seen = patience, []

    def update(self, score, net):
        self.seen.append((score, {k: v.clone() for k, v in net.state_dict().items()}))
        best = min(range(len(self.seen)), key=lambda i: self.seen[i][0])
        return len(self.seen) - best > self.patience

    def best(self):
        return min(self.seen, key=lambda s: s[0])[1]


def churn(epochs=24):
    net, stop = mlp(2560, 10, 90, 2).cuda(), EarlyStop()
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    for epoch in range(epochs):
        for _ in range(3):
            x, y = torch.randn(2048, 90, device="cuda"), torch.zeros(2048, dtype=torch.long, device="cuda")
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if stop.update(loss.item(), net):
            break
        note(size_of([t for _, s in stop.seen for t in s.values()]))
    net.load_state_dict(stop.best())


if __name__ == "__main__":
    main(globals())
