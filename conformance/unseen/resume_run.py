import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, dim=1536, depth=9, tokens=64, vocab=16000):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.ModuleList(nn.Linear(tokens, tokens) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(dim, 4 * dim) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(4 * dim, dim) for _ in range(depth))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for mix, up, down in zip(self.mix, self.up, self.down):
            x = x + mix(x.transpose(1, 2)).transpose(1, 2)
            x = x + down(F.gelu(up(x)))
        return self.head(x)


class Run:
    def __init__(self, folder, device="cuda"):
        self.path = os.path.join(folder, "last.pt")
        self.device = device
        self.model = Mixer().to(device)
        self.start = 0
        self.checkpoint = None

    def prepare(self):
        """Writes a checkpoint as a former run would have left it."""
        weights = self.model.state_dict()
        torch.save({"step": 1200, "model": weights,
                    "ema": {k: v.clone() for k, v in weights.items()}}, self.path)

    def resume(self):
        self.checkpoint = torch.load(self.path, map_location=self.device)
        self.model.load_state_dict(self.checkpoint["model"])
        self.start = self.checkpoint["step"]
        print("resumed at step", self.start, flush=True)

    def train(self, steps, batch):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4)
        for step in range(self.start, self.start + steps):
            ids = torch.randint(0, 16000, (batch, 64), device=self.device)
            loss = F.cross_entropy(self.model(ids).flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(step, loss.item(), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder)
        run.prepare()
        run.resume()
        run.train(steps=20, batch=24)
