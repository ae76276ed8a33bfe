"""Gradual unfreezing of a text encoder, one optimizer for each stage."""
import argparse
import json

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Encoder(nn.Module):
    def __init__(self, vocab=8000, dim=1536, layers=8, heads=12, classes=14):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(1, 256, dim) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, 4 * dim, batch_first=True, norm_first=True) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, ids):
        h = self.embed(ids) + self.pos[:, : ids.shape[1]]
        for layer in self.layers:
            h = layer(h)
        return self.head(h.mean(1))


class GradualUnfreezing:
    def __init__(self, model, loader, stages, lr=2e-3, decay=2.6, device="cuda"):
        self.model = model.to(device)
        self.loader, self.stages = loader, stages
        self.lr, self.decay, self.device = lr, decay, device
        self.runs = {}

    def unfreeze(self, count):
        self.model.requires_grad_(False)
        self.model.head.requires_grad_(True)
        groups = [{"params": list(self.model.head.parameters()), "lr": self.lr}]
        for depth, layer in enumerate(reversed(self.model.layers)):
            if depth >= count:
                break
            layer.requires_grad_(True)
            groups.append({"params": list(layer.parameters()), "lr": self.lr / self.decay ** (depth + 1)})
        return groups

    def run_stage(self, count, steps):
        groups = self.unfreeze(count)
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        losses = []
        self.model.train()
        batches = iter(self.loader)
        for _ in range(steps):
            ids, labels = next(batches)
            loss = criterion(self.model(ids.to(self.device)), labels.to(self.device))
            self.model.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        self.model.zero_grad(set_to_none=True)
        self.runs[count] = {"losses": losses, "optimizer": optimizer, "lrs": [g["lr"] for g in groups]}
        trained = sum(p.numel() for g in groups for p in g["params"]) / 1e6
        print(f"{count} layers ({trained:.0f}M parameters): loss {losses[0]:.4f} -> {losses[-1]:.4f}")

    def fit(self, steps):
        for count in self.stages:
            self.run_stage(count, steps)

    def report(self):
        return json.dumps({str(k): {"final": v["losses"][-1], "lrs": v["lrs"]} for k, v in self.runs.items()})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--stages", type=int, nargs="+", default=[1, 2, 4, 6, 8])
    ap.add_argument("--steps", type=int, default=4)
    ap.add_argument("--batch", type=int, default=8)
    args = ap.parse_args()
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(5)
    data = TensorDataset(torch.randint(0, 8000, (256, 128), generator=g), torch.randint(0, 14, (256,), generator=g))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True)
    trainer = GradualUnfreezing(Encoder(), loader, args.stages)
    trainer.fit(args.steps)
    print(trainer.report())


if __name__ == "__main__":
    main()
