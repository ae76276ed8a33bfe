"""Loops that keep outputs on the device, without their graph."""

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import note, size_of
from torch import nn
from zoo import Decoder, ImageNet


def collected_features(width=64, batch=64, size=64, steps=40):
    """Feature maps are put aside for a later look."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    features = []
    for _ in range(steps):
        pictures, targets = images(batch, size), labels(batch)
        classify_step(model, optimizer, pictures, targets)
        with torch.no_grad():
            features.append(model.body[:9](pictures))
        note(size_of(features))


def replay_buffer(width=96, batch=256, size=84, steps=60):
    """Observations of an agent are stored on the device."""
    net = nn.Sequential(nn.Conv2d(4, width, 8, 4), nn.ReLU(), nn.Conv2d(width, width, 4, 2), nn.ReLU(), nn.Flatten(),
                        nn.Linear(width * 81, 6)).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    buffer = []
    for _ in range(steps):
        seen = images(batch, size, 4)
        classify_step(net, optimizer, seen, labels(batch, 6))
        buffer.append((seen, labels(batch, 6)))
        note(size_of([frame for frame, _ in buffer]))


def remembered_sentences(width=768, depth=4, batch=16, length=256, steps=60):
    """An encoder's outputs go into a dictionary that is never emptied."""
    encoder, model = Decoder(width, depth).cuda().eval(), Decoder(256, 2).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    memory = {}
    for step in range(steps):
        ids = tokens(batch, length)
        with torch.no_grad():
            memory[step] = encoder.features(ids)
        train_step(model, optimizer, ids)
        note(size_of(memory.values()))


def evaluate(model, batches, batch, length, vocabulary):
    predictions = []
    with torch.no_grad():
        for _ in range(batches):
            predictions.append(model(tokens(batch, length, vocabulary)))
            note(size_of(predictions))
    return sum(len(part) for part in predictions)


def predictions(width=512, depth=4, batch=8, length=256, vocabulary=32000, batches=40):
    model = Decoder(width, depth, vocabulary).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        train_step(model, optimizer, tokens(batch, length, vocabulary))
    evaluate(model.eval(), batches, batch, length, vocabulary)


def predictions_joined(width=64, batch=256, size=48, batches=200):
    """Every batch of an evaluation is joined to those before; so it is alive twice at times."""
    model = ImageNet(width, classes=16384).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        classify_step(model, optimizer, images(batch // 4, size), labels(batch // 4))
    model.eval()
    scores = torch.empty(0, 16384, device="cuda")
    with torch.no_grad():
        for _ in range(batches):
            scores = torch.cat([scores, model(images(batch, size))])
            note(size_of([scores]))


if __name__ == "__main__":
    main(globals())
