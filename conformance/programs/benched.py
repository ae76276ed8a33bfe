"""benched.py NAME HISTORY: a program of bench/torch_programs.py. Where it runs out of memory it writes its history."""
import os
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'bench'))

import torch
from torch_programs import PROGRAMS

warnings.simplefilter('ignore')
name, history = sys.argv[1:3]
torch.manual_seed(0)
if '--recorded' in sys.argv:
    torch.cuda.memory._record_memory_history(max_entries=1000000)
failures = 0
try:
    for _ in PROGRAMS[name](torch):
        pass
except torch.OutOfMemoryError:
    failures = 1
    if '--recorded' in sys.argv:
        torch.cuda.memory._dump_snapshot(history)
torch.cuda.synchronize()
print(f' alloc {torch.cuda.max_memory_allocated() >> 20} res {torch.cuda.max_memory_reserved() >> 20}'
      f' retries {torch.cuda.memory_stats()["num_alloc_retries"]} ooms {failures}')
