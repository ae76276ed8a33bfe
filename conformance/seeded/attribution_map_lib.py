from collections import OrderedDict, defaultdict
from contextlib import contextmanager

import torch

RECORDS = OrderedDict()
_open = []


@contextmanager
def study(name):
    RECORDS[name] = defaultdict(list)
    _open.append(name)
    try:
        yield RECORDS[name]
    finally:
        _open.pop()


def note(what, value):
    RECORDS[_open[-1]][what].append(value)


def summary():
    name = _open[-1]
    parts = []
    for what, values in RECORDS[name].items():
        mean = torch.stack([v.float().mean() for v in values]).mean().item()
        parts.append(f"{what}={mean:.4f} ({len(values)})")
    return name + ": " + ", ".join(parts)
