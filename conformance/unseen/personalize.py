"""Test time personalization: a fresh adapter per subject on top of a frozen backbone, in mixed precision."""
import torch
import torch.nn as nn


class Backbone(nn.Module):
    def __init__(self, d=2048, n=4):
        super().__init__()
        self.inp = nn.Linear(256, d)
        self.mid = nn.ModuleList([nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU()) for _ in range(n)])

    def forward(self, x):
        h = self.inp(x)
        for m in self.mid:
            h = h + m(h)
        return h


class Adapter(nn.Module):
    def __init__(self, d=2048, hidden=32768, out=64):
        super().__init__()
        self.up = nn.Linear(d, hidden)
        self.down = nn.Linear(hidden, d)
        self.cls = nn.Linear(d, out)

    def forward(self, h):
        return self.cls(h + self.down(torch.relu(self.up(h))))


def fit_adapter(adapter, backbone, x, y, steps=3):
    opt = torch.optim.SGD(adapter.parameters(), lr=0.05)
    for _ in range(steps):
        with torch.no_grad():
            h = backbone(x)
        loss = nn.functional.cross_entropy(adapter(h).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def main(n_subjects=80):
    torch.manual_seed(1)
    with torch.device("cuda"):
        backbone = Backbone().requires_grad_(False).eval()
    results = {}
    with torch.autocast("cuda", dtype=torch.float16):
        for sid in range(n_subjects):
            x = torch.randn(512, 256, device="cuda")
            y = torch.randint(0, 64, (512,), device="cuda")
            with torch.device("cuda"):
                adapter = Adapter()
            loss = fit_adapter(adapter, backbone, x, y)
            with torch.no_grad():
                acc = (adapter(backbone(x)).argmax(1) == y).float().mean().item()
            results[sid] = (loss, acc)
            del adapter
            if sid % 10 == 0:
                print(f"subject {sid:03d} loss {loss:.3f} acc {acc:.3f}")
    print("mean acc", sum(a for _, a in results.values()) / len(results))


if __name__ == "__main__":
    main()
