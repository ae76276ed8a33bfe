"""Two towers over users and items, in-batch negatives, recall@20 on held-out pairs."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

USERS, ITEMS, DIM = 200_000, 50_000, 128


class Tower(nn.Module):
    def __init__(self, count, features):
        super().__init__()
        self.emb = nn.Embedding(count, DIM, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(DIM + features, 512), nn.ReLU(), nn.LayerNorm(512), nn.Linear(512, DIM))

    def forward(self, ids, feats):
        return F.normalize(self.mlp(torch.cat([self.emb(ids), feats], -1)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = Tower(USERS, 16), Tower(ITEMS, 32)
        self.log_scale = nn.Parameter(torch.tensor(2.5))

    def forward(self, u, uf, i, itf):
        scores = self.user(u, uf) @ self.item(i, itf).T * self.log_scale.exp()
        labels = torch.arange(len(u), device=u.device)
        return F.cross_entropy(scores, labels)


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    users = torch.randint(0, USERS, (n,), generator=g)
    items = torch.randint(0, ITEMS, (n,), generator=g)
    return TensorDataset(users, torch.randn(n, 16, generator=g), items)


@torch.inference_mode()
def recall(model, item_feats, loader, k=20, chunk=8192):
    model.eval()
    vectors = torch.cat([
        model.item(torch.arange(lo, min(lo + chunk, ITEMS)).cuda(), item_feats[lo:lo + chunk].cuda())
        for lo in range(0, ITEMS, chunk)])
    hits = total = 0
    for users, feats, items in loader:
        scores = model.user(users.cuda(), feats.cuda()) @ vectors.T
        top = scores.topk(k, dim=1).indices.cpu()
        hits += (top == items[:, None]).any(1).sum().item()
        total += len(users)
    model.train()
    return hits / total


def main():
    torch.manual_seed(0)
    item_feats = torch.randn(ITEMS, 32)
    train = DataLoader(make_data(64_000, 1), batch_size=4096, shuffle=True, drop_last=True)
    valid = DataLoader(make_data(4096, 2), batch_size=512)
    model = TwoTower().cuda()
    sparse = torch.optim.SGD([model.user.emb.weight, model.item.emb.weight], lr=0.05)
    dense = torch.optim.AdamW([p for n, p in model.named_parameters() if "emb" not in n], lr=1e-3)
    for step, (users, feats, items) in enumerate(train):
        loss = model(users.cuda(), feats.cuda(), items.cuda(), item_feats[items].cuda())
        sparse.zero_grad(set_to_none=True)
        dense.zero_grad(set_to_none=True)
        loss.backward()
        sparse.step()
        dense.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"recall@20 {recall(model, item_feats, valid):.4f}")


if __name__ == "__main__":
    main()
