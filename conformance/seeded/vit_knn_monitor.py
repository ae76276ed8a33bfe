# SimSiam-style pretraining of a small ViT, with an online kNN monitor
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader
from transformers import ViTConfig, ViTModel

torch.manual_seed(0)
device = 'cuda'
EPOCHS, STEPS, BATCH = 1, 70, 96


class Photos(Dataset):
    def __init__(self, n):
        self.images = torch.randint(0, 256, (128, 3, 224, 224), dtype=torch.uint8)
        self.labels = torch.randint(0, 100, (n,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i % 128], self.labels[i]


class KNNMonitor:
    """Collects features over an epoch; at its end every feature is classified by its neighbours."""

    def __init__(self, k=20):
        self.k = k
        self.reset()

    def reset(self):
        self.feats, self.labels = [], []

    def update(self, cls_token, labels):
        self.feats.append(cls_token.detach())
        self.labels.append(labels)

    def compute(self):
        feats = F.normalize(torch.cat(self.feats), dim=1)
        labels = torch.cat(self.labels).to(feats.device)
        sim = feats @ feats.t()
        nearest = sim.topk(self.k + 1, dim=1).indices[:, 1:]
        votes = labels[nearest].mode(dim=1).values
        return (votes == labels).float().mean().item()


class SimSiam(nn.Module):
    def __init__(self):
        super().__init__()
        cfg = ViTConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)
        self.vit = ViTModel(cfg, add_pooling_layer=False)
        self.proj = nn.Sequential(nn.Linear(384, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 1024))
        self.pred = nn.Sequential(nn.Linear(1024, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 1024))

    def forward(self, x):
        cls = self.vit(pixel_values=x).last_hidden_state[:, 0]
        z = self.proj(cls)
        return cls, z.detach(), self.pred(z)


def neg_cos(p, z):
    return -F.cosine_similarity(p, z, dim=-1).mean()


mean = torch.tensor([0.485, 0.456, 0.406], device=device).view(1, 3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], device=device).view(1, 3, 1, 1)


def two_views(x):
    x = (x.to(device).float() / 255 - mean) / std
    return x.flip(-1), x.roll(16, -1)


loader = DataLoader(Photos(BATCH * STEPS), batch_size=BATCH, shuffle=True, drop_last=True)
model = SimSiam().to(device)
opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
monitor = KNNMonitor()

for epoch in range(EPOCHS):
    monitor.reset()
    for step, (x, y) in enumerate(loader):
        a, b = two_views(x)
        with torch.autocast('cuda', dtype=torch.bfloat16):
            cls_a, z_a, p_a = model(a)
            cls_b, z_b, p_b = model(b)
            loss = 0.5 * (neg_cos(p_a, z_b) + neg_cos(p_b, z_a))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        monitor.update(cls_a, y)
        if step % 10 == 0:
            print(epoch, step, f'{loss.item():.4f}')
    print('knn top-1', monitor.compute())
