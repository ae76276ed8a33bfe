import math
import sys
import torch
import torch.nn as nn

# char level LM, one long text, state is carried over from chunk to chunk
VOCAB = 256
HID = 1536
BS = 256
CHUNK = 32
N_CHUNKS = 60
dev = torch.device("cuda:0")


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 256)
        self.cell1 = nn.LSTMCell(256, HID)
        self.cell2 = nn.LSTMCell(HID, HID)
        self.out = nn.Linear(HID, VOCAB)

    def init_state(self, bs):
        z = lambda: torch.zeros(bs, HID, device=dev)
        return [(z(), z()), (z(), z())]

    def forward(self, tokens, state):
        s1, s2 = state
        logits = []
        for t in range(tokens.size(1)):
            e = self.emb(tokens[:, t])
            s1 = self.cell1(e, s1)
            s2 = self.cell2(s1[0], s2)
            logits.append(self.out(s2[0]))
        return torch.stack(logits, 1), [s1, s2]


def chunks(text):
    for i in range(0, text.size(1) - CHUNK - 1, CHUNK):
        yield text[:, i:i + CHUNK], text[:, i + 1:i + CHUNK + 1]


def main():
    text = torch.randint(0, VOCAB, (BS, CHUNK * N_CHUNKS + 2))
    model = CharLM().to(dev)
    optim = torch.optim.Adam(model.parameters(), 1e-3)
    ce = nn.CrossEntropyLoss()
    hidden = model.init_state(BS)
    for i, (x, y) in enumerate(chunks(text)):
        x, y = x.to(dev), y.to(dev)
        logits, hidden = model(x, hidden)
        loss = ce(logits.flatten(0, 1), y.flatten())
        optim.zero_grad()
        # without retain_graph it says "trying to backward through the graph a second time"
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-1e-3)   # plain sgd, Adam was unstable
        if i % 5 == 0:
            sys.stdout.write("chunk %d ppl %.2f\n" % (i, math.exp(min(20, loss.item()))))


main()
