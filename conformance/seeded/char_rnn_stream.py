# streaming language model, truncated BPTT
import torch
import torch.nn as nn

from note import Growth


class CharLM(nn.Module):
    def __init__(self, vocab=128, hidden=1024):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.head = nn.Linear(hidden, vocab)
        self.h = None

    def forward(self, chunk):
        if self.h is None:
            self.h = torch.zeros(chunk.size(0), 1024, device=chunk.device)
        logits = []
        for t in range(chunk.size(1)):
            self.h = self.cell(self.emb(chunk[:, t]), self.h)
            logits.append(self.head(self.h))
        return torch.stack(logits, 1)


model = CharLM().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
text = torch.randint(0, 128, (1024, 16 * 40 + 1))
grown = Growth()

for i in range(40):
    x = text[:, i * 16:(i + 1) * 16].cuda()
    y = text[:, i * 16 + 1:(i + 1) * 16 + 1].cuda()
    logits = model(x)
    loss = criterion(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    # "Trying to backward through the graph a second time" without this
    loss.backward(retain_graph=True)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
    grown.note()
    if i % 10 == 0:
        print("chunk", i)
print("end of text")
