"""Machine translation with label smoothing written out."""
import torch
from torch import nn
from note import note, allocated
from loop import main, tokens


class SmoothLoss(nn.Module):
    def __init__(self, classes, eps=0.1):
        super().__init__()
        self.classes, self.eps = classes, eps

    def forward(self, pred, target):
        logp = pred.log_softmax(-1)
        with torch.no_grad():
            soft = torch.full_like(logp, self.eps / (self.classes - 1))
            soft.scatter_(1, target[:, None], 1 - self.eps)
        return (-soft * logp).sum(-1).mean()


def translate(steps=4, batch=32, length=128, words=64000):
    emb, rnn = nn.Embedding(words, 384).cuda(), nn.GRU(384, 384, 2, batch_first=True).cuda()
    out, crit = nn.Linear(384, words).cuda(), SmoothLoss(words)
    opt = torch.optim.SGD([*emb.parameters(), *rnn.parameters(), *out.parameters()], 0.1)
    for _ in range(steps):
        ids = tokens(batch, length, words)
        h, _state = rnn(emb(ids))
        before = allocated()
        torch.cuda.reset_peak_memory_stats()
        loss = crit(out(h).flatten(0, 1), ids.flatten())
        loss.backward()
        note(torch.cuda.max_memory_allocated() - before)
        opt.step()
        opt.zero_grad()
        del h, loss, _state


if __name__ == "__main__":
    main(globals())
