"""The phases of reinforcement learning on one card, and the memory that they need: as they are, with empty_cache, with sleep.

    ashlar dry-run --device A100-80GB -- python phases.py plain
    ashlar dry-run --device A100-80GB -- python phases.py empty_cache
    ashlar dry-run --device A100-80GB -- python phases.py sleep

A loop as PPO has it: the policy generates with a cache of keys and values, a reference model scores, the policy is trained.
`empty_cache` drops the cache of keys and values after each use. `sleep` keeps its addresses, and lets the reference and the
optimizer sleep as well while others work.
"""

import contextlib
import os
import sys

os.environ.setdefault("ASHLAR_CONF", "expandable_segments:True")

import torch
from torch import nn

import ashlar_gpu.torch as ashlar

LAYERS, WIDTH, TOKENS, SEQUENCES, BATCH, STEPS = 16, 2048, 1024, 64, 8, 3


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.mix(x)
        return x + self.down(torch.relu(self.up(x)))


def model():
    return nn.Sequential(*(Layer() for _ in range(LAYERS))).to("cuda", torch.bfloat16)


class Phases:
    def __init__(self, mode):
        self.mode = mode
        self.policy = model()
        with self.tag("reference"):
            self.reference = model().requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.policy.parameters())
        self.cache = None
        self.asleep = set()

    def tag(self, name):
        return ashlar.tag(name) if self.mode == "sleep" else contextlib.nullcontext()

    def sleep(self, name, keep):
        if self.mode == "sleep":
            ashlar.sleep(name, keep=keep)
            self.asleep.add(name)

    def wake(self, name):
        if name in self.asleep:
            ashlar.wake(name)
            self.asleep.remove(name)

    def open_cache(self):
        """Keys and values of all layers; what it holds is made anew each time."""
        if self.cache is None:
            with self.tag("cache"):
                self.cache = [torch.empty(2, SEQUENCES, TOKENS, WIDTH, dtype=torch.bfloat16, device="cuda")
                              for _ in range(LAYERS)]
        else:
            self.wake("cache")

    def close_cache(self):
        if self.mode == "empty_cache":
            self.cache = None
            torch.cuda.empty_cache()
        self.sleep("cache", keep="nothing")

    @torch.no_grad()
    def generate(self):
        self.open_cache()
        x = torch.zeros(SEQUENCES, 1, WIDTH, dtype=torch.bfloat16, device="cuda")
        for token in range(4):
            for layer, kept in zip(self.policy, self.cache):
                x = layer(x)
                kept[:, :, token:token + 1] = x
        self.close_cache()

    @torch.no_grad()
    def score(self, x):
        self.wake("reference")
        scores = self.reference(x).mean(-1)
        self.sleep("reference", keep="host")
        return scores

    def train(self, x, scores):
        self.wake("optimizer")
        loss = (self.policy(x).mean(-1) - scores).square().mean()
        loss.backward()
        with self.tag("optimizer"):
            self.optimizer.step()
        self.optimizer.zero_grad()
        self.sleep("optimizer", keep="host")


def main(mode):
    ashlar.install()
    phases = Phases(mode)
    phases.sleep("reference", keep="host")
    for _ in range(STEPS):
        phases.generate()
        x = torch.zeros(BATCH, TOKENS, WIDTH, dtype=torch.bfloat16, device="cuda")
        phases.train(x, phases.score(x))
    print(f"{mode}: {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB needed")


if __name__ == "__main__":
    main(sys.argv[1])
