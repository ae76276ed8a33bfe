"""Memory that PyTorch's allocator does not have, or may not have."""

import ctypes
import subprocess
import sys

import torch
from loop import classify_step, images, labels, main, tokens, train_step
from note import at_failure, note
from zoo import Decoder, ImageNet

NEIGHBOUR = """
import sys, torch
held = torch.empty(int(sys.argv[1]), dtype=torch.uint8, device="cuda")
print(torch.cuda.memory_reserved(), flush=True)
sys.stdin.read()
"""


def neighbour(taken=6_000, width=768, depth=10, batch=8, length=512, steps=6):
    """Another process sits on the device (MiB `taken`)."""
    command = [sys.executable, "-c", NEIGHBOUR, str(taken << 20)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        note(int(other.stdout.readline()))
        try:
            model = Decoder(width, depth).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            for _ in range(steps):
                train_step(model, optimizer, tokens(batch, length))
        finally:
            other.stdin.close()


def library(taken=5_000, width=64, batch=64, size=128, steps=6):
    """A library in this process asks the driver by itself."""
    torch.cuda.init()
    runtime = ctypes.CDLL(None)  # the one that this process has loaded
    held = ctypes.c_void_p()
    if runtime.cudaMalloc(ctypes.byref(held), ctypes.c_size_t(taken << 20)) != 0:
        raise RuntimeError("the library got no memory")
    note(taken << 20)
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        classify_step(model, optimizer, images(batch, size), labels(batch))


def free_on_the_device():
    return torch.cuda.mem_get_info()[0]


def fraction(percent=40, width=768, depth=10, batch=8, length=512, steps=6):
    """The process may have a part of the device only, and needs a little more."""
    torch.cuda.set_per_process_memory_fraction(percent / 100)
    model = Decoder(width, depth).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    with at_failure(free_on_the_device):
        for _ in range(steps):
            train_step(model, optimizer, tokens(batch, length))


def fraction_of_images(percent=25, width=64, batch=64, size=112, steps=6):
    torch.cuda.set_per_process_memory_fraction(percent / 100)
    model = ImageNet(width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with at_failure(free_on_the_device):
        for _ in range(steps):
            classify_step(model, optimizer, images(batch, size), labels(batch))


if __name__ == "__main__":
    main(globals())
