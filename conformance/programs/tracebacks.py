"""Errors of operations, of backward and of a graph: the frames are the program's and PyTorch's own."""

import os
import sys
import traceback

import torch
from tell import tell

HERE = os.path.abspath(__file__)
done = []


def frames(call):
    """(file, function) of each frame, the outermost first."""
    try:
        call()
    except Exception:
        return [(os.path.abspath(frame.filename), frame.name) for frame in traceback.extract_tb(sys.exc_info()[2])]
    raise AssertionError("no error")


def check(name, call, last=None):
    found = frames(call)
    assert not any("ashlar" in os.path.basename(os.path.dirname(file)) for file, _ in found), (name, found)
    assert found[0] == (HERE, "frames"), (name, found)
    assert last is None or found[-1] == (HERE, last), (name, found)
    done.append(name)


class Refused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return tensor * 1

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("no gradient")


def add():
    return torch.zeros(3, device="cuda") + torch.zeros(4, device="cuda")


def add_in_place():
    torch.zeros(3, device="cuda").add_(torch.zeros(4, device="cuda"))


def linear():
    return layer(torch.zeros(2, 3, 5, device="cuda"))


def too_much():
    return torch.empty(1 << 50, dtype=torch.uint8, device="cuda")


def backward_twice():
    loss = layer(torch.zeros(2, 4, device="cuda")).square().sum()
    loss.backward()
    loss.backward()


layer = torch.nn.Linear(4, 4).cuda()
check("an operation", add, "add")
check("one in place", add_in_place, "add_in_place")
check("a composed one", linear)
check("out of memory", too_much, "too_much")
check("backward", backward_twice)
check("a function of the program's", lambda: Refused.apply(layer.weight).sum().backward(), "backward")
try:
    add()
except RuntimeError as error:
    assert "must match the size" in str(error) and error.__context__ is None, error
done.append("an error's words")
check("a graph", torch.cuda.CUDAGraph().capture_end)
tell("tracebacks", checks=len(done))
