"""Small values: what a program reads back from the device is what it computed, whatever way it computed it."""

import threading

import torch
from tell import tell

counted = []


def check(name, got, wanted):
    assert got == wanted, "%s: %r is not %r" % (name, got, wanted)
    counted.append(name)


def arithmetic():
    x = torch.arange(10, device="cuda")
    check("sum", (x * 2 + 1).sum().item(), 100)
    check("strided", x.reshape(2, 5)[:, 1:4:2].tolist(), [[1, 3], [6, 8]])
    x[::2] = -1
    check("write through a view", x.tolist(), [-1, 1, -1, 3, -1, 5, -1, 7, -1, 9])
    check("mask", (x > 0).all().item(), False)
    check("nonzero", (x > 0).nonzero().flatten().tolist(), [1, 3, 5, 7, 9])
    check("masked", x[x > 4].tolist(), [5, 7, 9])
    check("unique", torch.unique(x).tolist(), [-1, 1, 3, 5, 7, 9])
    check("equal", torch.equal(x, x.clone()), True)
    check("half", torch.ones(3, device="cuda", dtype=torch.bfloat16).mul(1.5).tolist(), [1.5] * 3)
    check("expanded", torch.ones(1, device="cuda").expand(5).cumsum(0).tolist(), [1, 2, 3, 4, 5])
    check("sorted", torch.tensor([3, 1, 2], device="cuda").sort().indices.tolist(), [1, 2, 0])


def modes():
    with torch.inference_mode():
        check("inference", torch.full((3,), 7.0, device="cuda").sum().item(), 21)
    with torch.autocast("cuda", dtype=torch.float16):
        check("autocast", (torch.eye(2, device="cuda") @ torch.eye(2, device="cuda")).sum().item(), 2)
    pairs = torch.arange(6.0, device="cuda").reshape(3, 2)
    check("vmap", torch.vmap(lambda row: row.sum() * 2)(pairs).tolist(), [2, 10, 18])
    steps = [torch.zeros((), device="cuda") for _ in range(3)]
    torch._foreach_add_(steps, 1)
    check("foreach", [s.item() for s in steps], [1, 1, 1])


def random_numbers():
    torch.manual_seed(3)
    host = torch.rand(4).tolist()
    torch.manual_seed(3)
    drawn = torch.rand(1000, device="cuda")
    check("host numbers are not drawn", torch.rand(4).tolist(), host)
    check("in range", 0 <= drawn.min().item() <= drawn.max().item() < 1 and drawn.std().item() > 0.2, True)


def other_thread():
    told = []
    thread = threading.Thread(target=lambda: told.append((torch.arange(4, device="cuda") + 1).sum().item()))
    thread.start()
    thread.join()
    check("thread", told, [10])


for part in (arithmetic, modes, random_numbers, other_thread):
    part()
tell("values", checks=len(counted))
