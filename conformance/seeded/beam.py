"""Beam search by hand over a captioning decoder."""
import torch
from torch import nn
from note import note
from loop import main
from zoo import Decoder


class Past:
    def __init__(self):
        self.k = self.v = None

    def extend(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], 2)
        self.v = v if self.v is None else torch.cat([self.v, v], 2)
        return self.k, self.v

    def reorder(self, order):
        self.k, self.v = self.k.index_select(0, order), self.v.index_select(0, order)


@torch.no_grad()
def caption(images=48, beams=8, steps=150):
    net = Decoder(width=512, depth=8, vocabulary=6000).cuda().eval()
    past = [Past() for _ in net.blocks]
    ids = torch.ones(images * beams, 64, dtype=torch.long, device="cuda")
    total = torch.zeros(images, beams, device="cuda")
    for _ in range(steps):
        logp = net(ids, past)[:, -1].log_softmax(-1)
        best = (total.view(-1, 1) + logp).view(images, -1).topk(beams)
        total = best.values
        ids = (best.indices % 6000).view(-1, 1)
        order = (torch.arange(images, device="cuda")[:, None] * beams + best.indices // 6000).flatten()
        for p in past:
            p.reorder(order)
        note(sum(p.k.nbytes + p.v.nbytes for p in past))


if __name__ == "__main__":
    main(globals())
