import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvModule(nn.Module):
    def __init__(self, d, k=15):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.pw1 = nn.Conv1d(d, 2 * d, 1)
        self.dw = nn.Conv1d(d, d, k, padding=k // 2, groups=d)
        self.pw2 = nn.Conv1d(d, d, 1)

    def forward(self, x):
        y = F.glu(self.pw1(self.norm(x).transpose(1, 2)), 1)
        return x + self.pw2(F.silu(self.dw(y))).transpose(1, 2)


class FeedForward(nn.Sequential):
    def __init__(self, d):
        super().__init__(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * d, d))


class Conformerish(nn.Module):
    def __init__(self, mels=80, d=256, depth=6, phones=72):
        super().__init__()
        self.front = nn.Conv1d(mels, d, 5, stride=2, padding=2)
        self.ff = nn.ModuleList(FeedForward(d) for _ in range(depth))
        self.conv = nn.ModuleList(ConvModule(d) for _ in range(depth))
        self.head = nn.Linear(d, phones)

    def forward(self, mel):
        x = self.front(mel).transpose(1, 2)
        for ff, conv in zip(self.ff, self.conv):
            x = x + 0.5 * ff(x)
            x = conv(x)
        return self.head(x)


def run(epochs=3, lr=3e-4):
    torch.manual_seed(7)
    device = torch.device("cuda")
    net = Conformerish().to(device)
    optim = torch.optim.AdamW(net.parameters(), lr=lr, fused=True)
    train_lengths = [800, 1000, 1200, 600, 900, 1100, 700, 1000]
    dev_lengths = [1500, 900, 1200, 1000, 1300, 800, 1400, 1100] * 5
    steps = epochs * len(train_lengths)
    sched = torch.optim.lr_scheduler.LambdaLR(optim, lambda s: 0.5 * (1 + math.cos(math.pi * s / steps)))
    best = float("inf")

    for epoch in range(epochs):
        net.train()
        seen, total = 0, 0.0
        for frames in train_lengths:
            mel = torch.randn(16, 80, frames, device=device)
            phones = torch.zeros(16, frames // 2, dtype=torch.long, device=device)
            scores = net(mel)
            loss = F.cross_entropy(scores.flatten(0, 1), phones.flatten(), label_smoothing=0.1)
            optim.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            optim.step()
            sched.step()
            total += loss.item() * mel.shape[0]
            seen += mel.shape[0]
        print(f"epoch {epoch}: train {total / seen:.4f} lr {sched.get_last_lr()[0]:.2e}")

        # dev set
        net.eval()
        dev_loss, frames_seen = 0.0, 0
        for frames in dev_lengths:
            mel = torch.randn(16, 80, frames, device=device)
            phones = torch.zeros(16, frames // 2, dtype=torch.long, device=device)
            scores = net(mel)
            nll = F.cross_entropy(scores.flatten(0, 1), phones.flatten(), reduction="sum")
            dev_loss = dev_loss + nll
            frames_seen += phones.numel()
        dev_loss = float(dev_loss) / frames_seen
        best = min(best, dev_loss)
        print(f"epoch {epoch}: dev {dev_loss:.4f} best {best:.4f}")
    return best


if __name__ == "__main__":
    run()
