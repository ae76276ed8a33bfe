# Chromatin profile prediction from long DNA windows
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
device = 'cuda'


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, p):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.proj = nn.Linear(dim, dim)
        self.p = p

    def split(self, x):
        b, n, d = x.shape
        return x.view(b, n, self.heads, d // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        att = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        att = F.dropout(att.softmax(dim=-1), self.p, self.training)
        y = torch.matmul(att, v)
        return self.proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, heads, p):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads, p)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim), nn.Dropout(p))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Enformerish(nn.Module):
    def __init__(self, dim=384, heads=8, layers=6, tracks=64, p=0.1):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv1d(4, dim // 2, 15, padding=7), nn.GELU(), nn.MaxPool1d(4),
            nn.Conv1d(dim // 2, dim, 5, padding=2), nn.GELU(), nn.MaxPool1d(4))
        self.pos = nn.Parameter(torch.zeros(1, 2048, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads, p) for _ in range(layers)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, tracks)

    def forward(self, x):
        h = self.stem(x).transpose(1, 2)
        h = self.blocks(h + self.pos[:, :h.size(1)])
        return F.softplus(self.head(self.norm(h)))


def one_hot_batch(batch, length):
    ids = torch.randint(0, 4, (batch, length))
    return F.one_hot(ids, 4).transpose(1, 2).float()


BATCH, WINDOW, STEPS = 3, 2048 * 16, 20

model = Enformerish().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 5))
poisson = nn.PoissonNLLLoss(log_input=False)

history = []
for step in range(STEPS):
    seq = one_hot_batch(BATCH, WINDOW).to(device)
    target = torch.poisson(torch.full((BATCH, WINDOW // 16, 64), 0.7)).to(device)
    if torch.rand(()) < 0.5:
        seq, target = seq.flip(1, 2), target.flip(1)  # reverse complement
    loss = poisson(model(seq), target)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.2)
    opt.step()
    warmup.step()
    history.append(loss.item())
    if step % 5 == 0:
        print(f'step {step:3d} poisson nll {history[-1]:.4f}')

print('mean of the last five', sum(history[-5:]) / 5)
