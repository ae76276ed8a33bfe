"""Music transformer: relative positions by the skewing trick, long pieces."""
import torch
from torch import nn
import torch.nn.functional as F
from note import blocks_of
from watch import when_full
from loop import main, language_loss, tokens


class RelAttn(nn.Module):
    def __init__(self, d, h, n):
        super().__init__()
        self.h, self.qkv, self.o = h, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.er = nn.Parameter(torch.zeros(n, d // h))
        self.register_buffer("hide", torch.ones(n, n, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (t.view(b, n, self.h, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        rel = F.pad(torch.einsum("bhnd,md->bhnm", q, self.er), (1, 0)).view(b, self.h, n + 1, n)[:, :, 1:]
        w = (torch.einsum("bhnd,bhmd->bhnm", q, k) + rel) / (d // self.h) ** 0.5
        w = F.dropout(w.masked_fill(self.hide, -1e9).softmax(-1), 0.1, self.training)
        return self.o(torch.einsum("bhnm,bhmd->bhnd", w, v).transpose(1, 2).reshape(b, n, d))


class Composer(nn.Module):
    def __init__(self, d=384, n=2048, layers=6, v=400):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.layers = nn.ModuleList(nn.ModuleDict({"a": RelAttn(d, 6, n), "f": nn.Sequential(nn.Linear(d, 1024), nn.ReLU(), nn.Linear(1024, d)),
                                                   "n": nn.LayerNorm(d), "m": nn.LayerNorm(d)}) for _ in range(layers))
        self.out = nn.Linear(d, v)

    def forward(self, ids):
        x = self.e(ids)
        for p in self.layers:
            x = x + p["a"](p["n"](x))
            x = x + p["f"](p["m"](x))
        return self.out(x)


def compose(batch=4, length=2048):
    net = Composer().cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-4)
    square = batch * 6 * length * length
    when_full(lambda: blocks_of(square * 4) + blocks_of(square) + blocks_of(square * 4 + batch * 6 * length * 4))
    for _ in range(3):
        ids = tokens(batch, length, 400)
        loss = language_loss(net(ids), ids)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main(globals())
