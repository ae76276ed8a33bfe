"""Activations that a backward pass needs, scores of attention, logits."""

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import allocated, at_failure, blocks_of, over
from torchvision.models import resnet50
from zoo import Decoder


def deep_decoder(width=768, depth=24, batch=16, length=512, steps=4):
    """No checkpointing: it fails in the first forward pass."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with at_failure(over(allocated())):
        for _ in range(steps):
            train_step(model, optimizer, tokens(batch, length))


def larger_pictures(batch=32, sizes=4):
    """Progressive resizing: whole epochs fit, those at the next size do not."""
    model = resnet50().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for size in [128, 192, 256, 384][:sizes]:
        for _ in range(3):
            before = allocated()
            with at_failure(over(before)):
                classify_step(model, optimizer, images(batch, size), labels(batch))


def one_long_batch(width=1024, depth=12, batch=4, length=512, usual=6, times=4):
    """After some usual steps a batch comes with far longer texts."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(usual + 1):
        before = allocated()
        with at_failure(over(before)):
            train_step(model, optimizer, tokens(batch, length if step < usual else times * length))


def scores(width=512, depth=12, batch=2, length=2048, steps=4):
    """Attention as the textbook writes it: each layer keeps its scores."""
    model = Decoder(width, depth, fused=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with at_failure(lambda: blocks_of(batch * (width // 64) * length * length * 4)):
        for _ in range(steps):
            train_step(model, optimizer, tokens(batch, length))


def scores_of_longer_texts(width=1024, depth=8, batch=1, first=1024, more=1024, steps=6):
    model = Decoder(width, depth, fused=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        length = first + step * more
        with at_failure(lambda: blocks_of(batch * (width // 64) * length * length * 4)):
            train_step(model, optimizer, tokens(batch, length))


def large_vocabulary(width=512, depth=4, batch=4, length=1024, words=128_256, steps=4):
    """Logits over a large vocabulary, and their loss."""
    model = Decoder(width, depth, words).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with at_failure(lambda: blocks_of(batch * length * words * 4) + blocks_of(batch * (length - 1) * words * 4)):
        for _ in range(steps):
            train_step(model, optimizer, tokens(batch, length, words))


if __name__ == "__main__":
    main(globals())
