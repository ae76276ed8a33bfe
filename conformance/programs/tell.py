"""The one line of JSON that each program ends with: its peaks in bytes, as PyTorch counts them, and what it did."""

import json
import sys

import torch


def tell(program, **did):
    """`did`: what a runner compares. On a machine with many ranks, each tells its own."""
    stats = torch.cuda.memory_stats()
    line = {
        "program": program,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "num_alloc_retries": stats["num_alloc_retries"],
        "num_ooms": stats["num_ooms"],
    }
    line.update(did)
    sys.stdout.write(json.dumps(line) + "\n")  # one piece: ranks share the terminal
    sys.stdout.flush()
