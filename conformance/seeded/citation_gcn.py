import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument('--nodes', type=int, default=24000)
parser.add_argument('--degree', type=int, default=12)
parser.add_argument('--features', type=int, default=500)
parser.add_argument('--hidden', type=int, default=512)
parser.add_argument('--layers', type=int, default=5)
parser.add_argument('--classes', type=int, default=40)
parser.add_argument('--epochs', type=int, default=15)
parser.add_argument('--lr', type=float, default=0.01)
parser.add_argument('--dropout', type=float, default=0.5)
args = parser.parse_args()

device = 'cuda'
rng = np.random.default_rng(0)


def load_graph():
    """Symmetric citation graph with self loops, D^-1/2 (A + I) D^-1/2, as a sparse matrix."""
    n, m = args.nodes, args.nodes * args.degree
    src, dst = rng.integers(0, n, m), rng.integers(0, n, m)
    loops = np.arange(n)
    rows, cols = np.concatenate([src, dst, loops]), np.concatenate([dst, src, loops])
    edges = np.unique(rows * n + cols)
    rows, cols = edges // n, edges % n
    degree = np.bincount(rows, minlength=n).astype(np.float32)
    values = 1 / np.sqrt(degree[rows] * degree[cols])
    index = torch.from_numpy(np.stack([rows, cols]))
    return torch.sparse_coo_tensor(index, torch.from_numpy(values), (n, n)).coalesce()


class GraphConvolution(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out)

    def forward(self, x, adj):
        return torch.spmm(adj, self.lin(x))


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        dims = [args.features] + [args.hidden] * (args.layers - 1) + [args.classes]
        self.convs = nn.ModuleList(GraphConvolution(a, b) for a, b in zip(dims, dims[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(d) for d in dims[1:-1])

    def forward(self, x, adj):
        for conv, norm in zip(self.convs, self.norms):
            x = F.dropout(F.relu(norm(conv(x, adj))), args.dropout, self.training)
        return F.log_softmax(self.convs[-1](x, adj), dim=1)


adj = load_graph().to_dense()
features = torch.from_numpy(rng.random((args.nodes, args.features), dtype=np.float32))
labels = torch.from_numpy(rng.integers(0, args.classes, args.nodes))
perm = torch.from_numpy(rng.permutation(args.nodes))
idx_train, idx_val = perm[: args.nodes // 2], perm[args.nodes // 2:]

adj = adj.to(device)
features = features.to(device)
labels = labels.to(device)
idx_train, idx_val = idx_train.to(device), idx_val.to(device)

model = GCN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)

for epoch in range(args.epochs):
    t = time.time()
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        acc = (output[idx_val].argmax(1) == labels[idx_val]).float().mean().item()
    print(f'Epoch {epoch:03d} loss {loss.item():.4f} val acc {acc:.4f} {time.time() - t:.2f}s')
