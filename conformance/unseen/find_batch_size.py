"""train with the largest batch size that fits; halves it on OOM"""
import gc
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.ln2(x))


def make_model():
    return nn.Sequential(nn.Linear(512, 1024), *[Block(1024, 16) for _ in range(12)], nn.Linear(1024, 10)).cuda()


def train_steps(model, opt, batch_size, n=5):
    for step in range(n):
        x = torch.randn(batch_size, 256, 512, device="cuda")
        y = torch.randint(0, 10, (batch_size,), device="cuda")
        features = model(x)
        loss = nn.functional.cross_entropy(features.mean(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def find_and_train(batch_size=256, max_tries=4):
    model = make_model()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    errors = []
    for attempt in range(max_tries):
        try:
            loss = train_steps(model, opt, batch_size)
            print("ok with batch size", batch_size, "loss", loss)
            return batch_size
        except torch.cuda.OutOfMemoryError as e:
            errors.append(e)
            print(f"attempt {attempt}: batch {batch_size} does not fit, trying {batch_size // 2}")
            batch_size //= 2
            gc.collect()
            torch.cuda.empty_cache()
    raise errors[-1]


if __name__ == "__main__":
    print("batch size:", find_and_train())
