"""Steps whose requests are each larger than what is cached, and of one size where sizes are rounded up; for a while.

    tuned.py SECONDS
"""

import sys
import time

import torch
from tell import tell

MIB = 1 << 20
until = time.monotonic() + float(sys.argv[1])
steps = 0
while steps < 4 or time.monotonic() < until:
    torch.cuda.empty_cache()
    for i in range(24):
        small = torch.empty(300 << 10, dtype=torch.uint8, device="cuda")
        large = torch.empty((33 + i) * MIB, dtype=torch.uint8, device="cuda")
        del large, small
    steps += 1
    time.sleep(0.05)  # a step of a training takes its time: the tuner sees hundreds, not all that a second could hold
tell("tuned", steps=steps)
