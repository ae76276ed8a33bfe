import gc
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=768, depth=12, heads=12, vocab=30522, length=512):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.1, F.gelu, batch_first=True) for _ in range(depth))
        self.mlm = nn.Linear(dim, dim)

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[: ids.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.mlm(x)


class Job:
    def __init__(self, length=512):
        self.length = length
        self.model = Encoder().cuda()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.attempts = []

    def one_step(self, batch):
        ids = torch.randint(0, 30522, (batch, self.length), device="cuda")
        target = torch.randn(batch, self.length, 768, device="cuda")
        output = self.model(ids)
        loss = F.mse_loss(output, target)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def find_batch(self, batch):
        while batch >= 8:
            started = time.time()
            try:
                self.one_step(batch)
                self.attempts.append((batch, time.time() - started, None))
                return batch
            except torch.cuda.OutOfMemoryError as error:
                self.attempts.append((batch, time.time() - started, error))
                print(f"batch {batch} is too large", flush=True)
            self.optimizer.zero_grad(set_to_none=True)
            gc.collect()
            torch.cuda.empty_cache()
            batch = batch * 3 // 4
        raise self.attempts[-1][2]

    def run(self, steps=20):
        batch = self.find_batch(128)
        print("training with batches of", batch)
        for step in range(steps):
            print(step, self.one_step(batch), flush=True)


if __name__ == "__main__":
    Job().run()
