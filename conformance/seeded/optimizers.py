"""What optimizers take: their state in the first step, and temporaries as large as the model."""

import torch
from loop import classify_step, images, labels, language_loss, main, tokens
from note import allocated, note, size_of_model
from torch.nn import functional
from zoo import Decoder, ImageNet, mlp


def first_step(width=2048, depth=12, batch=2, length=256, steps=3):
    """Forward and backward fit; Adam's two moments do not."""
    model = Decoder(width, depth).cuda()
    note(2 * size_of_model(model))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        ids = tokens(batch, length)
        language_loss(model(ids), ids).backward()
        optimizer.step()
        optimizer.zero_grad()


def first_step_of_images(width=448, batch=8, size=64, steps=3):
    model = ImageNet(width).cuda()
    note(2 * size_of_model(model))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))


def state_is_half(width=2048, depth=10, batch=1, length=128, steps=5):
    """It fits: at the peak half of the memory is the optimizer's state."""
    model = Decoder(width, depth).cuda()
    note(2 * size_of_model(model))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(steps):
        ids = tokens(batch, length)
        language_loss(model(ids), ids).backward()
        optimizer.step()
        optimizer.zero_grad()


def temporaries(width=4096, depth=24, batch=64, steps=4):
    """A multi-tensor optimizer works on lists as large as the model."""
    model = mlp(width, depth).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for _ in range(steps):
        made = model(torch.randn(batch, width, device="cuda"))
        functional.mse_loss(made, torch.zeros_like(made)).backward()
        torch.cuda.reset_peak_memory_stats()
        before = allocated()
        optimizer.step()
        note(torch.cuda.max_memory_allocated() - max(before, allocated()))
        optimizer.zero_grad()


if __name__ == "__main__":
    main(globals())
