"""Generation token by token, with caches that grow."""

import torch
from loop import main, tokens
from note import at_failure, note, over, size_of, allocated
from zoo import Decoder


class Grown:
    """Keys and values are joined to those before."""

    def __init__(self):
        self.key = self.value = None

    def extend(self, key, value):
        if self.key is not None:
            key, value = torch.cat([self.key, key], 2), torch.cat([self.value, value], 2)
        self.key, self.value = key, value
        return key, value


class Static:
    """Keys and values have their room from the start."""

    def __init__(self, batch, heads, most, width, dtype=torch.float32):
        self.key, self.value = (torch.zeros(batch, heads, most, width, device="cuda", dtype=dtype) for _ in range(2))
        self.used = 0

    def extend(self, key, value):
        end = self.used + key.shape[2]
        self.key[:, :, self.used:end], self.value[:, :, self.used:end] = key, value
        self.used = end
        return self.key[:, :, :end], self.value[:, :, :end]


def generate(model, ids, caches, new):
    logits = model(ids, caches)
    for _ in range(new):
        ids = logits[:, -1:].argmax(-1)
        logits = model(ids, caches)
        note(size_of([t for cache in caches for t in (cache.key, cache.value)]))


def grown_cache(width=1024, depth=8, batch=64, prompt=256, new=500):
    model = Decoder(width, depth).cuda().eval()
    with torch.no_grad():
        generate(model, tokens(batch, prompt), [Grown() for _ in model.blocks], new)


def chats(width=2048, depth=12, batch=4, prompt=1024, talks=40):
    """A server keeps the cache of every talk that it ever had."""
    model, talk = Decoder(width, depth).half().cuda().eval(), {}
    with torch.no_grad():
        for number in range(talks):
            talk[number] = [Grown() for _ in model.blocks]
            ids = tokens(batch, prompt)
            for _ in range(4):
                ids = model(ids, talk[number])[:, -1:].argmax(-1)
            note(size_of([t for caches in talk.values() for cache in caches for t in (cache.key, cache.value)]))


def with_gradients(width=768, depth=6, batch=16, prompt=128, new=120):
    """Nobody said no_grad: each token's graph holds the caches before it."""
    model = Decoder(width, depth).cuda().eval()
    before = allocated()
    with at_failure(over(before)):
        caches = [Grown() for _ in model.blocks]
        ids = tokens(batch, prompt)
        said = []
        for _ in range(new):
            logits = model(ids, caches)
            said.append(logits[:, -1])
            ids = logits[:, -1:].argmax(-1)


if __name__ == "__main__":
    main(globals())
