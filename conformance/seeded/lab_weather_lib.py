"""House rules for the shared workstation."""
import os
import time

import torch

USERS_AT_ONCE = 4


def claim(index=0):
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    torch.manual_seed(int(os.environ.get("SEED", 0)))
    torch.backends.cudnn.benchmark = False
    device = torch.device("cuda", index)
    torch.cuda.set_device(device)
    torch.cuda.set_per_process_memory_fraction(1 / USERS_AT_ONCE, device)
    return device


def stamp():
    return time.strftime("%H:%M:%S")
