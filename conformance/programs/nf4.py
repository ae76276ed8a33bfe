"""Linear layers whose frozen weight is kept in 4 bits, with LoRA beside it, of plain PyTorch operations only.

Two codes lie in a byte; 64 weights share a scale of float32. Nested: scales in 8 bits, 256 of which share one more. A
weight is unpacked for a product and once more for its gradient, so that no more than one is whole at a time.
"""

import torch
from torch import nn

BLOCK, NESTED_BLOCK = 64, 256


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, inputs, layer):
        ctx.layer = layer
        return nn.functional.linear(inputs, layer.unpacked(inputs.dtype))

    @staticmethod
    def backward(ctx, gradient):
        return gradient @ ctx.layer.unpacked(gradient.dtype), None


class PackedLinear(nn.Module):
    def __init__(self, linear, rank, nested):
        super().__init__()
        self.rows, self.columns = linear.weight.shape
        scales = self.rows * self.columns // BLOCK
        self.register_buffer("packed", torch.zeros(scales * BLOCK // 2, dtype=torch.uint8))
        self.register_buffer("pairs", torch.zeros(256, 2, dtype=torch.bfloat16))
        self.register_buffer("scales", torch.zeros(scales, dtype=torch.uint8 if nested else torch.float32))
        if nested:
            self.register_buffer("steps", torch.zeros(256, dtype=torch.float32))
            self.register_buffer("outer", torch.zeros(-(-scales // NESTED_BLOCK), dtype=torch.float32))
            self.register_buffer("mean", torch.zeros((), dtype=torch.float32))
        self.down = nn.Parameter(torch.zeros(rank, self.columns, dtype=torch.float32))
        self.up = nn.Parameter(torch.zeros(self.rows, rank, dtype=torch.float32))

    def scales_of(self, dtype):
        if self.scales.dtype == torch.float32:
            return self.scales.to(dtype)
        outer = self.outer.repeat_interleave(NESTED_BLOCK)[: self.scales.numel()]
        return (self.steps[self.scales.to(torch.int32)] * outer + self.mean).to(dtype)

    def unpacked(self, dtype):
        values = nn.functional.embedding(self.packed.to(torch.int32), self.pairs).reshape(-1, BLOCK)
        return (values * self.scales_of(dtype).unsqueeze(1)).reshape(self.rows, self.columns)

    def forward(self, inputs):
        beside = nn.functional.linear(nn.functional.linear(inputs.float(), self.down), self.up)
        product = Product.apply(inputs, self)
        return product + beside.to(product.dtype) * 2.0


def pack(model, rank, nested):
    """Every linear layer but the output's."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear) and layer is not model.get_output_embeddings():
            holder, _, last = name.rpartition(".")
            setattr(model.get_submodule(holder), last, PackedLinear(layer, rank, nested))
    return model
