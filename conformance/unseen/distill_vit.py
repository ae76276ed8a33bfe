import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, classes=1000, patch=14, size=224):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (size // patch) ** 2, dim))
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class Distiller:
    def __init__(self, teacher, student, temperature=4.0, alpha=0.7):
        self.teacher = teacher.eval()
        self.student = student
        self.temperature, self.alpha = temperature, alpha
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=5e-4, weight_decay=0.05)

    def step(self, images, labels):
        self.student.train()
        target = self.teacher(images)
        logits = self.student(images)
        t = self.temperature
        soft = F.kl_div(F.log_softmax(logits / t, -1), F.softmax(target / t, -1), reduction="batchmean") * t * t
        hard = F.cross_entropy(logits, labels)
        loss = self.alpha * soft + (1 - self.alpha) * hard
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    device = "cuda"
    teacher = ViT(dim=1408, depth=32, heads=16).to(device)
    student = ViT(dim=384, depth=12, heads=6).to(device)
    distiller = Distiller(teacher, student)
    for name, model in ("teacher", teacher), ("student", student):
        print(name, f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f} M", flush=True)
    batch = 28
    for step in range(50):
        images = torch.randn(batch, 3, 224, 224, device=device)
        labels = torch.randint(0, 1000, (batch,), device=device)
        print(step, distiller.step(images, labels), flush=True)


if __name__ == "__main__":
    main()
