import functools
import torch
import torch.nn as nn
import torch.nn.functional as F

from note import allocated, note


def retry_smaller(max_tries=4, factor=2):
    """Run fn(batch_size, ...) again with a smaller batch when the GPU is full."""

    def wrap(fn):
        @functools.wraps(fn)
        def inner(batch_size, *args, **kwargs):
            attempts, before = [], allocated()
            for n in range(max_tries):
                try:
                    return fn(batch_size, *args, **kwargs)
                except RuntimeError as e:
                    if "out of memory" not in str(e):
                        raise
                    attempts.append((batch_size, e))
                    if n + 1 < max_tries:
                        note(allocated() - before)
                torch.cuda.empty_cache()
                batch_size //= factor
            print("tried", [b for b, _ in attempts])
            raise attempts[-1][1]

        return inner

    return wrap


class MLPMixer(nn.Module):
    def __init__(self, tokens=196, dim=512, depth=8):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(nn.ModuleList([
                nn.LayerNorm(dim), nn.Linear(tokens, tokens), nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)]))
        self.head = nn.Linear(dim, 1000)

    def forward(self, x):
        for n1, tok, n2, up, down in self.blocks:
            x = x + tok(n1(x).transpose(1, 2)).transpose(1, 2)
            x = x + down(F.gelu(up(n2(x))))
        return self.head(x.mean(1))


model = MLPMixer().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)


@retry_smaller(max_tries=4)
def train_epoch(batch_size, epoch):
    for it in range(8):
        images = torch.randn(batch_size, 196, 512, device="cuda")
        labels = torch.randint(0, 1000, (batch_size,)).cuda()
        loss = F.cross_entropy(model(images), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return batch_size


bs = 1024
for epoch in range(3):
    bs = train_epoch(bs, epoch)
    print("epoch", epoch, "batch size", bs)
