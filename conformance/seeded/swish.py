"""A decoder with a hand-written activation, as found in many old repositories."""
import torch
from torch import nn
from note import Growth
from loop import main, tokens, language_loss
from zoo import Attention


class SwishFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        s = torch.sigmoid(x)
        y = x * s
        ctx.x, ctx.y = x, y
        return y

    @staticmethod
    def backward(ctx, g):
        s = torch.sigmoid(ctx.x)
        return g * (s + ctx.y * (1 - s))


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = Attention(d, d // 64)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        x = x + self.att(self.ln1(x))
        return x + self.down(SwishFn.apply(self.up(self.ln2(x))))


class Lm(nn.Module):
    def __init__(self, d=768, n=8, v=16000):
        super().__init__()
        self.e, self.layers, self.h = nn.Embedding(v, d), nn.ModuleList(Layer(d) for _ in range(n)), nn.Linear(d, v)

    def forward(self, ids):
        x = self.e(ids)
        for layer in self.layers:
            x = layer(x)
        return self.h(x)


def train_lm(steps=30, batch=8):
    lm = Lm().cuda()
    opt, grown = torch.optim.AdamW(lm.parameters(), 3e-4), Growth()
    for _ in range(steps):
        ids = tokens(batch, 512, 16000)
        loss = language_loss(lm(ids), ids)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        del loss, ids
        grown.note()


if __name__ == "__main__":
    main(globals())
