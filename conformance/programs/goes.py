"""A forward pass that fails, and all that it had made goes: in an order that is the allocator's history.

Most of its graph is known to C++ alone, as Python has never asked for the saved tensors, the nodes and the gradients. Some of it is
the program's own: a node with tensors of its own, and tensors that a hook has packed.
"""
import torch
from tell import tell

CUDA = torch.device('cuda')


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, given, by):
        ctx.save_for_backward(given)
        ctx.by = by
        return given * by

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.by, None


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before, self.within = torch.nn.LayerNorm(width), torch.nn.Linear(width, width)

    def forward(self, x):
        return x + torch.nn.functional.gelu(self.within(self.before(x)))


def step(model, rows, classes):
    given = torch.randn(rows, 256, device=CUDA, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: (saved,), lambda packed: packed[0]):
        given = torch.sigmoid(given)
    out = model(Scaled.apply(given, torch.ones_like(given[:1])))
    return torch.nn.functional.cross_entropy(out.repeat(1, classes), torch.zeros(rows, dtype=torch.long, device=CUDA))


def main():
    torch.manual_seed(0)
    model, failures = torch.nn.Sequential(*(Block(256) for _ in range(12))).to(CUDA), 0
    step(model, 64, 1).backward()  # gradients that Python has not asked for
    for rows in (1 << 12, 1 << 11):
        try:
            step(model, rows, 512)
        except torch.cuda.OutOfMemoryError:
            failures += 1
    model.zero_grad()
    tell('goes', failures=failures)


if __name__ == '__main__':
    main()
