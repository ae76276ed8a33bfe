"""A training job of many ranks, to be run over the hollow device: it leaves one memory snapshot a rank.

    ashlar dry-run --devices 2 --capacity 3GiB -- python bench/fleet/ranks.py --ranks 512 --out /tmp/ranks

PyTorch is imported once; each rank is a process that is forked before CUDA starts, as many at a time as there are
devices. The job is a pipeline of four stages, a transformer in parts, each stage run by a quarter of the ranks on data of
its own: the lengths of the sequences differ from rank to rank and from step to step. What is wrong with the job, so that
an answer can be compared with it:

    ranks 40 to 47   one node with another setting: max_split_size_mb:64
    rank 37          three times the batch: it fails, out of memory, first of all
    rank N/2+13      the same with the batch two and a half times, and fails later
    ranks N/4+4..+7  keep the output of each step: a leak
    rank N-5         holds a second copy of its weights
"""

import argparse
import os
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

STAGES = 4
WIDTH = 512
VOCABULARY = 16000
LAYERS = 3
BATCH = 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (p.view(b, t, 8, -1).transpose(1, 2) for p in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        scores = (q @ k.transpose(-1, -2) / 8).softmax(dim=-1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Stage(nn.Module):
    def __init__(self, stage):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH) if stage == 0 else None
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS + (2 if stage == 1 else 0)))
        self.head = nn.Linear(WIDTH, VOCABULARY) if stage == STAGES - 1 else None

    def forward(self, x):
        if self.embedding is not None:
            x = self.embedding(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) if self.head is not None else x


def lengths_of(rank, steps):
    drawn = random.Random(rank)
    return [drawn.choice(range(96, 257, 8)) for _ in range(steps)]


def train(rank, ranks, device, steps):
    stage = rank * STAGES // ranks
    batch = 3 * BATCH if rank == 37 else 5 * BATCH // 2 if rank == ranks // 2 + 13 else BATCH
    leaks = ranks // 4 + 4 <= rank < ranks // 4 + 8
    model = Stage(stage).to(device)
    copy = Stage(stage).to(device) if rank == ranks - 5 else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    kept = []
    for step, length in enumerate(lengths_of(rank, steps)):
        if rank in (37, ranks // 2 + 13):
            length = 128 + (64 if rank == 37 else 48) * step  # what comes next is longer
        if stage == 0:
            x = torch.zeros(batch, length, dtype=torch.long, device=device)
        else:
            x = torch.zeros(batch, length, WIDTH, device=device, requires_grad=True)
        y = model(x)
        if stage == STAGES - 1:
            loss = F.cross_entropy(y.view(-1, VOCABULARY), torch.zeros(batch * length, dtype=torch.long, device=device))
        else:
            loss = y.float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if leaks:
            kept.append(y.detach())
    return copy


def run(rank, ranks, device, steps, out):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(ranks)
    if 40 <= rank < 48:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64"
    torch.cuda.set_device(device)
    torch.cuda.memory._record_memory_history(max_entries=200000, context="alloc", stacks="python")
    try:
        train(rank, ranks, torch.device("cuda", device), steps)
    except torch.cuda.OutOfMemoryError as error:
        print(f"rank {rank}: {error}", file=sys.stderr)
    torch.cuda.memory._dump_snapshot(os.path.join(out, f"rank{rank}_memory_snapshot.pickle"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--first", type=int, default=0, help="leave the ranks before it out")
    parser.add_argument("--last", type=int, default=None, help="leave the ranks after it out")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    torch.set_num_threads(1)
    running = {}
    failed = 0
    last = arguments.ranks - 1 if arguments.last is None else arguments.last
    for rank in range(arguments.first, last + 1):
        device = next(d for d in range(arguments.at_once) if d not in running.values())
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run(rank, arguments.ranks, device, arguments.steps, arguments.out)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        running[child] = device
        while len(running) == arguments.at_once or (rank == last and running):
            pid, status = os.wait()
            del running[pid]
            failed += status != 0
    sys.exit(f"{failed} ranks did not end well" if failed else 0)


if __name__ == "__main__":
    main()
