"""Summarisation by an encoder and a decoder of torch's own; the environment has a limit."""
import torch
from torch import nn
import torch.nn.functional as F
from note import at_failure
from loop import main, tokens


class Summariser(nn.Module):
    def __init__(self, d=512, v=8000):
        super().__init__()
        self.e = nn.Embedding(v, d)
        self.t = nn.Transformer(d, 8, 6, 6, 2048, 0.1, batch_first=True)
        self.o = nn.Linear(d, v)

    def forward(self, src, tgt):
        return self.o(self.t(self.e(src), self.e(tgt), tgt_is_causal=True,
                             tgt_mask=nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], device="cuda")))


def summarise(batch=40):
    net = Summariser().cuda()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    with at_failure(lambda: torch.cuda.mem_get_info()[0]):
        for _ in range(3):
            src, tgt = tokens(batch, 512, 8000), tokens(batch, 128, 8000)
            F.cross_entropy(net(src, tgt).flatten(0, 1), tgt.flatten()).backward()
            opt.step()
            opt.zero_grad()


if __name__ == "__main__":
    main(globals())
