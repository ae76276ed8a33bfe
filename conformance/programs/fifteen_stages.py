"""Fifteen steps of small, medium and large blocks that come, go, and are given back: what is held after each."""

import gc

import torch
from tell import tell

KIB, MIB = 1 << 10, 1 << 20
STEPS = [
    ("a", 256 * KIB),
    ("b", 512 * KIB),
    ("a", 0),
    ("c", 128 * KIB),
    ("b", 0),
    ("c", 0),
    ("", 0),
    ("d", 3 * MIB),
    ("e", 4 * MIB),
    ("d", 0),
    ("e", 0),
    ("", 0),
    ("f", 12 * MIB),
    ("f", 0),
    ("", 0),
]
kept, held = {}, []
for name, size in STEPS:
    if size:
        kept[name] = torch.empty(size // 4, device="cuda")
    elif name:
        del kept[name]
        gc.collect()
    else:
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    held.append([torch.cuda.memory_allocated(), torch.cuda.memory_reserved()])
tell("fifteen_stages", held=held)
