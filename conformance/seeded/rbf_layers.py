"""Radial basis layers with a backward pass of our own, for fitting turbine efficiency maps."""
import torch
from torch import nn
from torch.autograd import Function


class RadialBasis(Function):
    """y[b, o] = sum over i and k of coef[i, k, o] * exp(-((x[b, i] - centre[k]) * sharp) ** 2)"""

    @staticmethod
    def forward(ctx, x, centre, coef, sharp):
        distance = (x[..., None] - centre) * sharp
        basis = torch.exp(-distance.square())
        ctx.save_for_backward(x, centre, coef)
        ctx.sharp = sharp
        ctx.parts = distance, basis
        return basis.flatten(1) @ coef.flatten(0, 1)

    @staticmethod
    def backward(ctx, grad):
        x, centre, coef = ctx.saved_tensors
        distance, basis = ctx.parts
        grad_coef = (basis.flatten(1).t() @ grad).view_as(coef)
        grad_basis = (grad @ coef.flatten(0, 1).t()).view_as(basis)
        grad_x = (grad_basis * basis * distance).sum(-1) * (-2 * ctx.sharp)
        return grad_x, None, grad_coef, None


class RadialLayer(nn.Module):
    def __init__(self, inputs, outputs, centres=16):
        super().__init__()
        self.register_buffer("centre", torch.linspace(-2, 2, centres))
        self.coef = nn.Parameter(torch.randn(inputs, centres, outputs) / (inputs * centres) ** 0.5)
        self.norm = nn.LayerNorm(inputs)
        self.sharp = centres / 4

    def forward(self, x):
        return RadialBasis.apply(self.norm(x), self.centre, self.coef, self.sharp)


class EfficiencyMap(nn.Module):
    def __init__(self, sensors=24, width=512, depth=9):
        super().__init__()
        self.enter = nn.Linear(sensors, width)
        self.layers = nn.ModuleList([RadialLayer(width, width) for _ in range(depth)])
        self.leave = nn.Linear(width, 1)

    def forward(self, sensors):
        x = self.enter(sensors)
        for layer in self.layers:
            x = x + layer(x)
        return self.leave(x)


def fit(rows=4096, rounds=3):
    with torch.device("cuda"):
        surrogate = EfficiencyMap()
    optimizer = torch.optim.SGD(surrogate.parameters(), lr=0.01, momentum=0.9)
    for number in range(rounds):
        sensors = torch.rand(rows, 24, device="cuda")
        efficiency = torch.rand(rows, 1, device="cuda")
        error = nn.functional.mse_loss(surrogate(sensors), efficiency)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        print(number, error.item())


if __name__ == "__main__":
    fit()
