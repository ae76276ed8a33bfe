"""Hooks that keep what passes them, and gradients that nobody clears."""

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import Growth, note, size_of
from zoo import Decoder, ImageNet, adapters, with_lora


def watched_with_graph(width=512, depth=6, batch=16, length=512, steps=40):
    """A forward hook appends outputs as they are."""
    model, seen, grown = Decoder(width, depth).cuda(), [], Growth()
    for block in model.blocks[::2]:
        block.register_forward_hook(lambda module, given, made: seen.append(made))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        grown.note()


def watched(width=64, batch=64, size=64, steps=40):
    """A forward hook appends detached outputs."""
    model, seen = ImageNet(width).cuda(), []
    for layer in model.body[2::6]:
        layer.register_forward_hook(lambda module, given, made: seen.append(made.detach().clone()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))
        note(size_of(seen))


def watched_gradients(width=768, depth=4, batch=8, length=256, steps=40):
    model, flow = Decoder(width, depth).cuda(), []
    for block in model.blocks:
        block.grow.register_full_backward_hook(lambda module, inputs, outputs: flow.append(outputs[0]))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        note(size_of(flow))


def gradients_of_the_base(width=2048, depth=8, batch=2, length=256, steps=6):
    """Adapters are trained; the base was not frozen, and its gradients are never cleared."""
    model = with_lora(Decoder(width, depth), 16).cuda()
    optimizer = torch.optim.AdamW(adapters(model))
    for _ in range(steps):
        train_step(model, optimizer, tokens(batch, length))
        trained = {id(p) for p in adapters(model)}
        note(size_of(p.grad for p in model.parameters() if p.grad is not None and id(p) not in trained))


def gradients_of_the_body(width=448, batch=8, size=64, steps=8):
    """Only the head is trained, and only its gradients are cleared; those of the body add up unseen."""
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))
        note(size_of(p.grad for p in model.body.parameters()))


if __name__ == "__main__":
    main(globals())
