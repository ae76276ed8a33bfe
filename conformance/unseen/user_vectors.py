"""Dialogue model with a learned vector table per user; users are added when they are first seen."""
import torch
import torch.nn as nn


class UserTables(nn.Module):
    def __init__(self, dim=1024, slots=8192):
        super().__init__()
        self.dim, self.slots = dim, slots
        self.index = {}
        self.tables = nn.ParameterList()

    def lookup(self, user, optimizer):
        if user not in self.index:
            self.index[user] = len(self.tables)
            table = nn.Parameter(torch.randn(self.slots, self.dim, device="cuda") * 0.02)
            self.tables.append(table)
            optimizer.add_param_group({"params": [table]})
        return self.tables[self.index[user]]


class Dialogue(nn.Module):
    def __init__(self, d=1024):
        super().__init__()
        self.inp = nn.Embedding(10000, d)
        self.rnn = nn.GRUCell(d, d)
        self.cross = nn.MultiheadAttention(d, 8, batch_first=True)
        self.out = nn.Linear(d, 10000)

    def forward(self, ids, table):
        h = torch.zeros(ids.size(0), 1024, device=ids.device)
        for t in range(ids.size(1)):
            h = self.rnn(self.inp(ids[:, t]), h)
        mem = table.unsqueeze(0).expand(ids.size(0), -1, -1)
        z, _ = self.cross(h.unsqueeze(1), mem, mem, need_weights=False)
        return self.out(z.squeeze(1))


class Sessions(torch.utils.data.Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, i):
        return torch.tensor(i % 40), torch.randint(0, 10000, (8, 6)), torch.randint(0, 10000, (8,))


net = Dialogue().cuda()
users = UserTables()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
seen = 0
for uid, ids, target in torch.utils.data.DataLoader(Sessions(), batch_size=None):
    table = users.lookup(uid, opt)
    loss = nn.functional.cross_entropy(net(ids.cuda(), table), target.cuda())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    seen += 1
    if seen % 40 == 0:
        print("sessions", seen, "loss", round(loss.item(), 4))
print("users", len(users.tables))
