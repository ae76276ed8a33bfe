import torch
import torch.nn as nn


class Config:
    vocab = 256
    embed = 512
    hidden = 1536
    layers = 3
    chunk = 8
    streams = 1536
    chunks_per_update = 64
    updates = 20


class CharRNN(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.embed)
        self.cells = nn.ModuleList(
            nn.GRUCell(cfg.embed if i == 0 else cfg.hidden, cfg.hidden) for i in range(cfg.layers))
        self.out = nn.Linear(cfg.hidden, cfg.vocab)

    def initial(self, n, device):
        return [torch.zeros(n, c.hidden_size, device=device) for c in self.cells]

    def forward(self, tokens, state):
        outputs = []
        for t in range(tokens.size(1)):
            x = self.embed(tokens[:, t])
            nxt = []
            for cell, h in zip(self.cells, state):
                x = cell(x, h)
                nxt.append(x)
            state = nxt
            outputs.append(x)
        return self.out(torch.stack(outputs, 1)), state


def stream(cfg, device):
    while True:
        block = torch.randint(0, cfg.vocab, (cfg.streams, cfg.chunk + 1), device=device)
        yield block[:, :-1], block[:, 1:]


cfg = Config()
device = torch.device("cuda")
model = CharRNN(cfg).to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
data = stream(cfg, device)

for update in range(cfg.updates):
    state = model.initial(cfg.streams, device)
    optimizer.zero_grad()
    total = 0.0
    for chunk in range(cfg.chunks_per_update):
        tokens, targets = next(data)
        logits, state = model(tokens, state)
        loss = criterion(logits.reshape(-1, cfg.vocab), targets.reshape(-1)) / cfg.chunks_per_update
        loss.backward(retain_graph=True)
        total += loss.item()
        if chunk % 2 == 0:
            print(f"update {update} chunk {chunk} loss {total:.4f}", flush=True)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
