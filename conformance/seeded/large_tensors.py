"""One tensor that lives for the whole run and is larger than all else."""

import torch
from loop import classify_step, labels, main, tokens, train_step, update
from note import note, size_of
from torch import nn
from torch.nn import functional
from zoo import Decoder, ImageNet


def data_on_the_device(samples=20000, size=128, width=32, batch=64, steps=8):
    pictures = torch.empty(samples, 3, size, size, device="cuda")
    targets = torch.zeros(samples, dtype=torch.long, device="cuda")
    note(size_of([pictures]))
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        part = slice(step * batch, (step + 1) * batch)
        classify_step(model, optimizer, pictures[part], targets[part])


def vocabulary(words=3_000_000, width=512, batch=512, length=64, steps=6):
    """A table of embeddings with a row for every word that there is."""
    table = nn.EmbeddingBag(words, width, sparse=True, mode="sum", device="cuda")
    note(size_of(table.parameters()))
    head = nn.Linear(width, 1000).cuda()
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
    for _ in range(steps):
        loss = functional.cross_entropy(head(table(tokens(batch, length, words))), labels(batch))
        update(optimizer, loss)


def distances(points=40_000, width=512, depth=4, batch=8, length=256, steps=6):
    """A matrix of all distances is made once and kept to draw negatives from."""
    bank = torch.randn(points, width, device="cuda")
    matrix = torch.cdist(bank, bank)
    note(size_of([matrix]))
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(steps):
        matrix[step].topk(16)
        train_step(model, optimizer, tokens(batch, length))


if __name__ == "__main__":
    main(globals())
