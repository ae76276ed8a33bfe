"""Sequential recommender with a table of all items, sparse gradients."""
import torch
from torch import nn
import torch.nn.functional as F
from note import note
from loop import main


class SasRec(nn.Module):
    def __init__(self, items, d=64, layers=2, length=100):
        super().__init__()
        self.items = nn.Embedding(items, d, sparse=True)
        self.pos = nn.Parameter(torch.zeros(length, d))
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 2, 4 * d, 0.1, batch_first=True), layers, enable_nested_tensor=False)

    def forward(self, seq, cand):
        h = self.enc(self.items(seq) + self.pos)[:, -1]
        return (h[:, None] * self.items(cand)).sum(-1)


def recommend(items=24_000_000, steps=12, batch=1024):
    net = SasRec(items)
    note(net.items.weight.nbytes)
    net = net.cuda()
    rest = [p for n, p in net.named_parameters() if not n.startswith("items")]
    opts = [torch.optim.SGD(net.items.parameters(), 0.1), torch.optim.AdamW(rest, 1e-3)]
    for _ in range(steps):
        seq, cand = torch.randint(0, items, (batch, 100)).cuda(), torch.randint(0, items, (batch, 20)).cuda()
        loss = F.cross_entropy(net(seq, cand), torch.zeros(batch, dtype=torch.long, device="cuda"))
        loss.backward()
        for o in opts:
            o.step()
            o.zero_grad()


if __name__ == "__main__":
    main(globals())
