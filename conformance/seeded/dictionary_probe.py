# %% [markdown]
# Sparse dictionaries on the residual stream

# %%
from collections import defaultdict
import torch
from torch import nn
import torch.nn.functional as F

device = "cuda"
D, LAYERS, CTX, VOCAB = 768, 8, 256, 16000

# %%
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn = nn.MultiheadAttention(D, 12, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.n2(x))


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, ids):
        x = self.tok(ids)
        for b in self.blocks:
            x = b(x)
        return x


class SparseDictionary(nn.Module):
    def __init__(self, width=4096):
        super().__init__()
        self.enc = nn.Linear(D, width)
        self.dec = nn.Linear(width, D, bias=False)

    def forward(self, x):
        code = F.relu(self.enc(x - x.mean(0)))
        return self.dec(code), code

# %%
lm = TinyLM().to(device).eval().requires_grad_(False)
sites = [2, 4, 6]

def tap(model, where):
    stream = defaultdict(list)

    def make(site):
        def grab(module, args, out):
            stream[site].append(out.detach().flatten(0, 1))
        return grab

    handles = [model.blocks[i].register_forward_hook(make(i)) for i in where]
    return (lambda site: stream[site][-1]), handles

latest, handles = tap(lm, sites)
dicts = nn.ModuleDict({str(s): SparseDictionary() for s in sites}).to(device)
opt = torch.optim.Adam(dicts.parameters(), 1e-3)

# %%
for step in range(90):
    ids = torch.randint(0, VOCAB, (16, CTX), device=device)
    with torch.no_grad():
        lm(ids)
    total = 0.0
    for s in sites:
        x = latest(s)
        y, code = dicts[str(s)](x)
        loss = F.mse_loss(y, x) + 4e-3 * code.abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if step % 15 == 0:
        print(step, round(total / len(sites), 5))

# %%
for h in handles:
    h.remove()
with torch.no_grad():
    print({s: tuple(dicts[str(s)].dec.weight.shape) for s in sites})
