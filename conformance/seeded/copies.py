"""Several copies of a model on one device."""

import copy

import torch
from loop import classify_step, images, labels, language_loss, main, tokens, train_step, update
from note import note, size_of, size_of_model
from torch.nn import functional
from zoo import Decoder, ImageNet


def averaged(width=1536, depth=12, batch=2, length=128, steps=6):
    """A moving average of the weights, by deepcopy, beside the model."""
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = copy.deepcopy(model).requires_grad_(False)
    note(size_of_model(average))
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), model.parameters()):
                mine.lerp_(theirs, 0.01)


def teacher(width=1280, depth=12, batch=2, length=256, steps=6):
    """Distillation from a net of the same size."""
    student, guide = Decoder(width, depth).cuda(), Decoder(width, depth).cuda().eval()
    note(size_of_model(guide))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(steps):
        ids = tokens(batch, length)
        with torch.no_grad():
            wanted = guide(ids).softmax(-1)
        update(optimizer, functional.kl_div(student(ids).log_softmax(-1), wanted, reduction="batchmean"))


def preference(width=1024, depth=16, batch=2, length=256, steps=5):
    """A policy with its reference and an old policy, all whole."""
    policy = Decoder(width, depth).cuda()
    reference, old = (copy.deepcopy(policy).eval().requires_grad_(False) for _ in range(2))
    note(size_of_model(reference) + size_of_model(old))
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    for _ in range(steps):
        chosen, refused = tokens(batch, length), tokens(batch, length)
        with torch.no_grad():
            base = language_loss(reference(chosen), chosen) - language_loss(old(refused), refused)
        gain = language_loss(policy(chosen), chosen) - language_loss(policy(refused), refused)
        update(optimizer, functional.softplus(gain - base))


def best_so_far(width=384, batch=16, size=32, epochs=30):
    """A copy of the weights for each new best, none thrown away."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = []
    for _ in range(epochs):
        for _ in range(2):
            classify_step(model, optimizer, images(batch, size), labels(batch))
        best.append(copy.deepcopy(model.state_dict()))
        note(size_of(t for state in best for t in state.values()))


def master_weights(width=1536, depth=16, batch=2, length=256, steps=5):
    """A bf16 model with copies of its weights in fp32 for the optimizer."""
    model = Decoder(width, depth).bfloat16().cuda()
    masters = [p.detach().float().requires_grad_() for p in model.parameters()]
    note(size_of(masters))
    optimizer = torch.optim.SGD(masters, lr=0.1)
    for _ in range(steps):
        ids = tokens(batch, length)
        language_loss(model(ids), ids).backward()
        for master, p in zip(masters, model.parameters()):
            master.grad, p.grad = p.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)


if __name__ == "__main__":
    main(globals())
