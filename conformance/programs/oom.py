"""Asks for more and more until the device has no more, and goes on with less: how out-of-memory is handled."""

import torch
from tell import tell

kept, size, failures = [], 1 << 30, 0
while failures < 3:
    try:
        kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        failures += 1
        size //= 2
tell("oom", kept=len(kept), failures=failures)
