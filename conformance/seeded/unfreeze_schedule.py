"""Fine-tunes a ConvNeXt on leaf diseases with gradual unfreezing: head, then stage by stage."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import convnext_large

device = "cuda"
torch.manual_seed(5)

STAGES = [
    ("head", ["classifier"], 3e-3),
    ("last", ["classifier", "features.7"], 3e-4),
    ("deep", ["classifier", "features.7", "features.6", "features.5"], 1e-4),
    ("all", [""], 3e-5),
]


class GradualTrainer:
    def __init__(self, model, loader, steps):
        self.model = model
        self.loader = loader
        self.steps = steps
        self.runs = {}
        self.scaler = torch.amp.GradScaler("cuda", enabled=False)

    def open_stage(self, name, prefixes, lr):
        for key, p in self.model.named_parameters():
            p.requires_grad_(any(key.startswith(prefix) for prefix in prefixes))
        decay = [p for p in self.model.parameters() if p.requires_grad and p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.requires_grad and p.ndim <= 1]
        optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05},
                                       {"params": plain, "weight_decay": 0.0}], lr=lr, fused=True)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
        self.runs[name] = {"optimizer": optimizer, "schedule": schedule, "losses": []}
        return self.runs[name]

    def batches(self):
        while True:
            yield from self.loader

    def fit(self):
        source = self.batches()
        for name, prefixes, lr in STAGES:
            run = self.open_stage(name, prefixes, lr)
            count = sum(p.numel() for p in self.model.parameters() if p.requires_grad)
            for _ in range(self.steps):
                images, labels = next(source)
                images = F.interpolate(images.to(device), size=128, mode="bicubic")
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = F.cross_entropy(self.model(images), labels.to(device), label_smoothing=0.1)
                run["optimizer"].zero_grad(set_to_none=True)
                self.scaler.scale(loss).backward()
                self.scaler.step(run["optimizer"])
                self.scaler.update()
                run["schedule"].step()
                run["losses"].append(loss.item())
            run["optimizer"].zero_grad(set_to_none=True)
            print(f"{name}: {count / 1e6:.1f} M trained, loss {sum(run['losses']) / self.steps:.3f}", flush=True)

    def summary(self):
        return {name: (min(run["losses"]), run["schedule"].get_last_lr()[0]) for name, run in self.runs.items()}


g = torch.Generator().manual_seed(0)
leaves = TensorDataset(torch.rand(256, 3, 64, 64, generator=g), torch.randint(0, 38, (256,), generator=g))
net = convnext_large(weights=None, num_classes=38).to(device)
trainer = GradualTrainer(net, DataLoader(leaves, 16, shuffle=True), steps=4)
trainer.fit()
for name, (loss, lr) in trainer.summary().items():
    print(f"{name:>5} best {loss:.3f} last lr {lr:.1e}")
