import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


class TextEncoder(nn.Module):
    def __init__(self, vocab=50000, dim=1536, depth=6, heads=16, length=128, classes=20):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.1, "gelu", batch_first=True) for _ in range(depth))
        self.cls = nn.Linear(dim, classes)

    def forward(self, ids):
        x = self.embed(ids) + self.pos.weight[: ids.size(1)]
        for layer in self.layers:
            x = layer(x)
        return self.cls(x[:, 0])


class PhasedTrainer:
    """Each phase has its own learning rate and warm-up."""

    def __init__(self, model, phases):
        self.model = model
        self.phases = phases
        self.schedules = []

    def begin_phase(self, lr, warmup):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=0.01)
        schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))
        self.schedules.append(schedule)
        return optimizer, schedule

    def lr_curve(self):
        return [s.get_last_lr()[0] for s in self.schedules]

    def train(self, batch, steps):
        for number, (lr, warmup) in enumerate(self.phases):
            optimizer, schedule = self.begin_phase(lr, warmup)
            for _ in range(steps):
                ids = torch.randint(0, 50000, (batch, 128), device="cuda")
                labels = torch.randint(0, 20, (batch,), device="cuda")
                loss = nn.functional.cross_entropy(self.model(ids), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
            print(f"phase {number} loss {loss.item():.4f} lrs {self.lr_curve()[-3:]}", flush=True)


def main():
    with torch.device("cuda"):
        model = TextEncoder()
    phases = [(3e-5 * 0.9 ** i, 10 + i) for i in range(24)]
    PhasedTrainer(model, phases).train(batch=16, steps=2)


main()
