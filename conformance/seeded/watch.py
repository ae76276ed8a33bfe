"""Counts while the failing operation still holds what it holds."""
import torch
from note import note


def when_full(count):
    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(lambda device, wanted, total, free: note(count()))
