"""ViT with attention maps for the plots in the paper."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    # collected by plot_attention() after training
    maps = []
    record = True

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1)) * (C // self.heads) ** -0.5
        attn = attn.softmax(dim=-1)
        if self.record:
            Attention.maps.append(attn)
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, img=224, patch=16, dim=384, depth=6, heads=6, classes=100):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, (img // patch) ** 2 + 1, dim))
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


def plot_attention(every=50):
    for i, m in enumerate(Attention.maps[::every]):
        m = m[0].detach().float().mean(0).cpu()
        # plt.imshow(m); plt.savefig(f"attn_{i}.png")


def main():
    vit = ViT().to("cuda")
    opt = torch.optim.AdamW(vit.parameters(), lr=5e-4, weight_decay=0.05)
    for step in range(60):
        x = torch.randn(96, 3, 224, 224, device="cuda")
        y = torch.randint(0, 100, (96,), device="cuda")
        loss = F.cross_entropy(vit(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            print(step, loss.item())
    plot_attention()


if __name__ == "__main__":
    main()
