"""A replay buffer of ten million Python objects beside a small model, until a request fails: what a look at the names costs."""
import collections
import json
import sys

import torch

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_250_000  # of eight objects each, which the collector knows


def remembered(step):
    """A transition as users write it: lists of numbers, and a dictionary with lists of its own."""
    state, following = [step, 0.5, 0.25], [step + 1, 0.5, 0.25]
    info = {'tokens': [step, step + 1], 'episode': [step // 100], 'lives': [3, step]}
    return [state, [1], step % 7, following, info]


def main():
    buffer = collections.deque(maxlen=STEPS)
    for step in range(STEPS):
        buffer.append(remembered(step))
    model = torch.nn.Linear(1024, 1024).cuda()
    kept = []
    try:
        while True:
            kept.append(model(torch.randn(65536, 1024, device='cuda')).detach())
    except torch.OutOfMemoryError:
        print(json.dumps({'steps': len(buffer)}))


if __name__ == '__main__':
    main()
