"""record: a block that ends well, and one that runs out of memory."""
import json

import torch

import ashlar_gpu


def fill():
    return [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(5)]


with ashlar_gpu.record() as well:
    tensor = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
failed = ashlar_gpu.record()
try:
    with failed:
        fill()
except torch.cuda.OutOfMemoryError:
    pass
print(json.dumps({"well": well.explanation.verdict, "peak": well.explanation.peak.allocated_bytes,
                  "failed": failed.explanation.verdict if failed.failed else None,
                  "verdict": failed.explanation.headline}))
