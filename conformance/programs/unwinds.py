"""Fails in a function that holds much, which the error gives back on its way up."""

import torch
from tell import tell


def fails():
    held = [torch.empty(1 << 28, dtype=torch.uint8, device="cuda") for _ in range(12)]
    return held, torch.empty(4 << 30, dtype=torch.uint8, device="cuda")


try:
    fails()
except torch.cuda.OutOfMemoryError:
    pass
tell("unwinds", left=torch.cuda.memory_allocated())
