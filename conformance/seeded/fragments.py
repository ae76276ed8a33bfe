"""Memory that is free and cannot be used."""

import random

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import at_failure, note, stranded
from zoo import Decoder, ImageNet


def growing_texts(width=512, depth=8, batch=8, first=64, more=24, steps=40, words=16000):
    """A curriculum: each batch is a little longer than the one before."""
    model = Decoder(width, depth, words).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with at_failure(stranded):
        for step in range(steps):
            train_step(model, optimizer, tokens(batch, first + step * more, words))


def growing_pictures(width=64, batch=32, first=48, more=8, steps=30):
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with at_failure(stranded):
        for step in range(steps):
            size = first + step * more
            classify_step(model, optimizer, images(batch, size), labels(batch))


def found_neighbours(points=1_000_000, width=512, queries=800, each=32, requests=8):
    """A search remembers what it found: made after the scores were let go, it lies where they were."""
    bank = torch.randn(points, width, device="cuda")
    found = []
    with at_failure(stranded):
        for _ in range(requests):
            scores = torch.randn(queries, width, device="cuda") @ bank.T
            best = scores.topk(each).indices
            del scores
            found.append(bank[best])


def cached_prefixes(width=1024, depth=8, requests=60, most=16, scale=96):
    """A server of prompts of many lengths keeps a small state of each."""
    model = Decoder(width, depth, 32000).half().cuda().eval()
    draw, states = random.Random(2), []
    with torch.no_grad(), at_failure(stranded):
        for _ in range(requests):
            length = scale * draw.randrange(1, 32)
            logits = model(tokens(draw.randrange(1, most), length, 32000))
            states.append(logits[:, -1, : width * 8].clone().repeat(4, 1))
        note(stranded())


def lengths_of_all_kinds(width=768, depth=8, batch=12, most=512, steps=30):
    """Batches as long as their longest text, under whatever settings the run has."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    draw = random.Random(3)
    with at_failure(stranded):
        for _ in range(steps):
            train_step(model, optimizer, tokens(batch, draw.randrange(most // 8, most)))
        note(stranded())


def rounded(width=704, depth=10, batch=9, length=353, steps=6):
    """Odd sizes under a setting that rounds them up."""
    model = Decoder(width, depth, 10_007).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        stats = torch.cuda.memory_stats()
        note(stats["allocated_bytes.all.peak"] - stats["requested_bytes.all.peak"])


if __name__ == "__main__":
    main(globals())
