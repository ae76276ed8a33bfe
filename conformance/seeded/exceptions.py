"""Retries after a failure, and caches that are emptied all the time."""

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import allocated, note
from zoo import Decoder, ImageNet


def halved_batch(width=768, depth=12, batch=64, length=512, least=4):
    """The exception is kept for a report; its traceback holds the frames of the failed pass."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before, failures = allocated(), []
    while batch >= least:
        try:
            train_step(model, optimizer, tokens(batch, length))
            break
        except torch.cuda.OutOfMemoryError as error:
            failures.append(error)
            batch //= 2
        note(allocated() - before)
    else:
        raise RuntimeError("no batch is small enough")


def skipped_batches(width=64, batch=64, steps=12):
    """A batch that is too large is skipped, and its error remembered."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    last, before = None, allocated()
    for step in range(steps):
        size = 256 if step == 4 else 96
        try:
            classify_step(model, optimizer, images(batch, size), labels(batch))
        except torch.cuda.OutOfMemoryError as error:
            if last is not None:
                raise
            last = error
            note(allocated() - before)


def emptied_each_step(width=768, depth=8, batch=8, length=512, steps=12):
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        torch.cuda.empty_cache()


def emptied_in_evaluation(width=64, batch=128, size=64, batches=20):
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        classify_step(model, optimizer, images(batch, size), labels(batch))
    model.eval()
    with torch.no_grad():
        for _ in range(batches):
            model(images(batch, size)).argmax(-1).cpu()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main(globals())
