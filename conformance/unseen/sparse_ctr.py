# click-through model, sparse embedding table + dense tower
import argparse
import torch
import torch.nn as nn

ap = argparse.ArgumentParser()
ap.add_argument("--rows", type=int, default=4_000_000)
ap.add_argument("--dim", type=int, default=128)
ap.add_argument("--fields", type=int, default=40)
ap.add_argument("--batch", type=int, default=8192)
ap.add_argument("--steps", type=int, default=90)
opt = ap.parse_args()


class CTR(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(opt.rows, opt.dim, sparse=True, device="cuda")
        self.tower = nn.Sequential(nn.Linear(opt.fields * opt.dim, 1024), nn.ReLU(),
                                   nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()

    def forward(self, ids):
        return self.tower(self.table(ids).flatten(1)).squeeze(1)


model = CTR()
dense_optim = torch.optim.Adam(model.tower.parameters(), lr=1e-3)
table_lr = 0.05


def step_table():
    # plain sgd on the rows that were touched
    g = model.table.weight.grad
    with torch.no_grad():
        rows, vals = g._indices()[0], g._values()
        model.table.weight.index_add_(0, rows[-opt.batch * opt.fields:], vals[-opt.batch * opt.fields:], alpha=-table_lr)


bce = nn.BCEWithLogitsLoss()
for step in range(opt.steps):
    ids = torch.randint(0, opt.rows, (opt.batch, opt.fields), device="cuda")
    click = torch.randint(0, 2, (opt.batch,), device="cuda").float()
    loss = bce(model(ids), click)
    dense_optim.zero_grad()
    loss.backward()
    dense_optim.step()
    step_table()
    if step % 20 == 0:
        print("step", step, "bce", loss.item())
