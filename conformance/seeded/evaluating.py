"""Evaluations that keep what only a backward pass needs."""

import torch
from loop import classify_step, images, labels, language_loss, main, tokens, train_step
from note import Growth, allocated, at_failure, note, over
from torch.nn import functional
from zoo import Decoder, ImageNet


def inline(width=512, depth=6, batch=8, length=512, epochs=1, batches=30):
    """model.eval(), and the loop follows."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        model.train()
        for _ in range(6):
            train_step(model, optimizer, tokens(batch, length))
        model.eval()
        before = allocated()
        with at_failure(over(before)):
            total = 0
            for _ in range(batches):
                ids = tokens(batch, length)
                total += language_loss(model(ids), ids)
        note(allocated() - before)
        print(total.item() / batches)


def validate(model, batch, size, batches):
    losses, grown = [], Growth()
    for _ in range(batches):
        losses.append(functional.cross_entropy(model(images(batch, size)), labels(batch)))
        grown.note()
    return torch.stack(losses).mean()


def in_a_function(width=64, batch=32, size=96, batches=30):
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(6):
        classify_step(model, optimizer, images(batch, size), labels(batch))
    model.eval()
    validate(model, batch, size, batches)


def evaluate(model, batch, length, batches):
    right, before = 0, allocated()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(batches):
        ids = tokens(batch, length)
        with at_failure(over(before)):
            guess = model(ids)  # the guess before this one still has its graph
        note(torch.cuda.max_memory_allocated() - before)
        right += (guess.argmax(-1) == ids).sum().item()
    return right


def larger_batches(width=512, depth=8, batch=4, length=512, times=6, batches=5):
    """No accumulation: every batch is let go, yet one is larger than training's, and saves all its activations."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        train_step(model, optimizer, tokens(batch, length))
    model.eval()
    evaluate(model, times * batch, length, batches)


if __name__ == "__main__":
    main(globals())
