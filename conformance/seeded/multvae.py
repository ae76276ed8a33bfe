# Mult-VAE for implicit feedback (Liang et al.), synthetic log
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_USERS, N_ITEMS, PER_USER = 60_000, 16_000, 40
rng = np.random.default_rng(3)
user_of = torch.arange(N_USERS).repeat_interleave(PER_USER)
item_of = torch.from_numpy(rng.integers(0, N_ITEMS, N_USERS * PER_USER))
dev = torch.device("cuda:0")


class MultVAE(nn.Module):
    def __init__(self, items, hidden=600, latent=200):
        super().__init__()
        self.enc = nn.Sequential(nn.Dropout(0.5), nn.Linear(items, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, items))

    def forward(self, x):
        mu, logvar = self.enc(F.normalize(x)).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def rows(first, last):
    """Binary rows of users first..last"""
    out = torch.zeros(last - first, N_ITEMS, device=dev)
    lo, hi = first * PER_USER, last * PER_USER
    out[(user_of[lo:hi] - first).to(dev), item_of[lo:hi].to(dev)] = 1.0
    return out


net = MultVAE(N_ITEMS).to(dev)
opt = torch.optim.Adam(net.parameters(), 1e-3)
feedback = rows(0, N_USERS)
BATCH, beta = 2500, 0.0

for epoch in range(2):
    net.train()
    order = list(range(0, N_USERS - 10_000, BATCH))
    rng.shuffle(order)
    for start in order:
        x = feedback[start:start + BATCH]
        beta = min(0.2, beta + 1 / 200)
        logits, mu, logvar = net(x)
        nll = -(F.log_softmax(logits, -1) * x).sum(-1).mean()
        kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(-1).mean()
        loss = nll + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("epoch", epoch, "loss", round(loss.item(), 3), "beta", round(beta, 3))

    net.eval()
    hits = 0.0
    with torch.no_grad():
        for start in range(N_USERS - 10_000, N_USERS, BATCH):
            x = feedback[start:start + BATCH]
            top = net(x)[0].topk(100).indices
            hits += x.gather(1, top).sum().item()
    print("recall@100", hits / (10_000 * PER_USER))
