"""Next-item recommendation over long sessions, in chunks; the user state goes on from chunk to chunk."""
import torch
from torch import nn
from torch.nn import functional as F

device = 'cuda'
torch.manual_seed(1)
ITEMS, DIM, USERS, CHUNK, WINDOW = 60_000, 256, 512, 24, 20


class SessionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, DIM)
        self.cell = nn.GRUCell(DIM, 1024)
        self.mix = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, DIM))
        self.state = None
        self.popularity = None

    def start(self, users):
        self.state = torch.zeros(users, 1024, device=device)
        self.popularity = torch.zeros(ITEMS, device=device)

    def new_window(self):
        self.state = self.state.detach()

    def forward(self, clicks):
        outs = []
        h = self.state
        for t in range(clicks.size(1)):
            h = self.cell(self.items(clicks[:, t]), h)
            outs.append(self.mix(h))
        self.remember(h, clicks)
        return torch.stack(outs, 1)

    def remember(self, h, clicks):
        self.state = h
        flat = clicks.reshape(-1)
        self.popularity.index_add_(0, flat, torch.ones_like(flat, dtype=torch.float))


def sampled_softmax(query, model, target, negatives):
    pos = (query * model.items(target)).sum(-1, keepdim=True)
    neg = query @ model.items(negatives).t()
    logits = torch.cat([pos, neg], -1).flatten(0, 1)
    return F.cross_entropy(logits, torch.zeros(logits.size(0), dtype=torch.long, device=device))


gen = torch.Generator().manual_seed(5)
sessions = torch.randint(ITEMS, (USERS, CHUNK * 40 + 1), generator=gen)

model = SessionNet().to(device)
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
model.start(USERS)

for k in range(40):
    part = sessions[:, k * CHUNK:(k + 1) * CHUNK + 1].to(device)
    negatives = torch.randint(ITEMS, (256,), generator=gen).to(device)
    query = model(part[:, :-1])
    loss = sampled_softmax(query, model, part[:, 1:], negatives)
    # without it: "Trying to backward through the graph a second time"
    (loss / WINDOW).backward(retain_graph=True)
    if (k + 1) % WINDOW == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        model.new_window()
    if k % 5 == 0:
        print(f'chunk {k:3d} loss {loss.item():.4f} seen {int(model.popularity.count_nonzero())}')
