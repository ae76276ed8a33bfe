"""numba: arrays that are made anew in each turn, by the driver's functions, which it looks up itself."""

import json

import numpy as np
from numba import cuda

TURNS = 200
total = 0
for turn in range(TURNS):
    made = cuda.to_device(np.full(1 << (12 + turn % 6), turn, dtype=np.int32))
    scratch = cuda.device_array(made.size * 4, dtype=np.float32)
    total += int(made.copy_to_host()[0]) + scratch.size
    del made, scratch
print(json.dumps({"program": "numba_turns", "turns": TURNS, "total": total}))
