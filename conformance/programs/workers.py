"""DataLoader workers, forked and spawned, with pinned memory and copies that do not block."""

import torch
from tell import tell
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.arange(256).repeat_interleave(1024).reshape(256, 1024))
    total = torch.zeros((), dtype=torch.long, device="cuda")
    for context in ("fork", "spawn"):
        loader = DataLoader(data, batch_size=4, num_workers=2, pin_memory=True, multiprocessing_context=context)
        for (batch,) in loader:
            rows = batch.cuda(non_blocking=True)
            total += rows[:, 0].sum()
    assert total.item() == 2 * sum(range(256)), total.item()
    tell("workers", sum_of_first_column=total.item())
