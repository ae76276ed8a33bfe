"""Programs that go on as values of the device say: decides.py [written] NAME... , of stop, wait, batch and rows.

written: the program itself has the values (VALUES) in the place of what it would read of the device.
"""
import sys

import torch
from tell import tell

VALUES = {'stop': [0.9, 0.8, 0.3], 'wait': [False, False, False, True], 'batch': [37], 'rows': [1000]}


def stop(values):
    """A training that ends early, and keeps what each step gave."""
    model = torch.nn.Linear(512, 512).cuda()
    kept = []
    for _ in range(20):
        out = model(torch.randn(2048, 512, device='cuda'))
        loss = out.square().mean()
        loss.backward()
        kept.append(out.detach().clone())
        seen = values.pop(0) if values else loss.item()  # reads: stop
        if seen < 0.5:
            break
    return len(kept)


def wait(values):
    """A generation until one of its sequences is done, whose cache grows meanwhile."""
    cache, done = torch.zeros(8, 0, 1024, device='cuda'), torch.zeros(8, dtype=torch.bool, device='cuda')
    for _ in range(20):
        cache = torch.cat([cache, torch.randn(8, 64, 1024, device='cuda')], dim=1)
        done = done | (cache[:, -1, 0] > 2)
        is_any_done = done.any()
        if values.pop(0) if values else is_any_done:  # reads: wait
            break
    return cache.shape[1]


def batch(values):
    """A batch as long as its longest sequence."""
    lengths = torch.randn(32, 4096, device='cuda').argmax(dim=-1)
    longest = lengths.max()
    length = values[0] if values else int(longest)  # reads: batch
    embedding = torch.nn.Embedding(1000, 512).cuda()
    words = torch.zeros(32, length, dtype=torch.long, device='cuda')
    torch.nn.functional.gelu(embedding(words)).sum().backward()
    return length


def rows(values):
    """Rows that a mask selects. Written: as many rows of the same tensor, by their indices."""
    table = torch.randn(50000, 64, device='cuda')
    mask = table[:, 0] > 1
    if values:
        chosen = table[torch.zeros(values[0], dtype=torch.long, device='cuda')]
    else:
        chosen = table[mask]  # reads: rows
    return len(chosen.clone())


def main():
    is_written = 'written' in sys.argv
    did, peaks = {}, {}
    for name in (word for word in sys.argv[1:] if word in VALUES):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        did[name] = globals()[name](list(VALUES[name]) if is_written else [])
        peaks[name] = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]
    tell('decides', did=did, peaks=peaks)


if __name__ == '__main__':
    main()
