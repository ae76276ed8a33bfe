#!/usr/bin/env python3
"""Processor time of whole training steps in plain PyTorch, over the hollow device: under PyTorch's own allocator, under Ashlar by
PyTorch's class for allocators, and under Ashlar as its plug-in.

    bench/torch_steps.py --ashlar build/release/bin/ashlar --python /path/to/venv/bin/python

Each run is a process of its own, in turn, so that what the machine does is alike: a round has each once, and the ratios are within
rounds. Medians are told, and the least and the greatest ratio. No history is recorded. Losses are no figures there: what is equal is the peak of what was allocated, or the exit code is 1.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUBJECTS = {"own": None, "ours": "native", "as a plug-in": "pluggable"}
WARM, STEPS = 5, 40


def transformer(torch):
    """12 layers of width 256, each operation by itself."""
    layers = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 12,
                                         enable_nested_tensor=False)
    return layers, lambda: torch.ones(8, 128, 256, device="cuda")


def convolutions(torch):
    """24 layers with their norms, as in a residual network."""
    layers = []
    for _ in range(24):
        layers += [torch.nn.Conv2d(64, 64, 3, padding=1, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers), lambda: torch.ones(8, 64, 32, 32, device="cuda")


def perceptron(torch):
    """Few operations, and large ones."""
    layers = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(8)]
    return torch.nn.Sequential(*layers), lambda: torch.ones(64, 1024, device="cuda")


def bert(torch):
    """transformers' BERT as it is, with its own loss."""
    import transformers

    class Trained(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.BertForSequenceClassification(transformers.BertConfig())

        def forward(self, tokens):
            return self.model(tokens, labels=tokens[:, 0] * 0).loss

    return Trained(), lambda: torch.ones(8, 128, dtype=torch.long, device="cuda")


def resnet(torch):
    """torchvision's ResNet-50."""
    import torchvision

    return torchvision.models.resnet50(), lambda: torch.ones(8, 3, 224, 224, device="cuda")


PROGRAMS = {"bert": bert, "resnet": resnet, "transformer": transformer, "convolutions": convolutions, "perceptron": perceptron}


def one(program):
    """In the process under measure: a line of JSON."""
    import torch

    torch.cuda.init()
    torch.cuda.memory._record_memory_history(None)  # `ashlar dry-run` turns it on, at a price
    model, batch = PROGRAMS[program](torch)
    model = model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    began, before = 0.0, 0
    for step in range(WARM + STEPS):
        if step == WARM:
            torch.cuda.synchronize()
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
            began = time.process_time()
        model(batch()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    took = time.process_time() - began
    blocks = (torch.cuda.memory_stats()["allocation.all.allocated"] - before) // STEPS
    print("figures " + json.dumps({"ms": 1000 * took / STEPS, "blocks": blocks, "peak": torch.cuda.max_memory_allocated()}), flush=True)


def measured(asked, program, interface):
    script = [str(pathlib.Path(__file__).resolve()), "--one", program]
    words = [asked.ashlar, "dry-run", "--once", "--", asked.python] + (["-m", "ashlar_gpu.torch"] if interface else []) + script
    prefix = str(pathlib.Path(asked.ashlar).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "ASHLAR_PREFIX": prefix, "OMP_NUM_THREADS": "1"}
    if interface:
        environment["ASHLAR_TORCH_INTERFACE"] = interface
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("figures ")]
    if not lines:
        sys.exit(f"{program} under {interface or 'PyTorch'}: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
    return json.loads(lines[0].removeprefix("figures "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ashlar", help="the built program")
    parser.add_argument("--python", help="an interpreter with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--without-plugin", action="store_true", help="the class alone beside PyTorch's own")
    parser.add_argument("--one", choices=sorted(PROGRAMS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        return one(asked.one)
    subjects = {name: interface for name, interface in SUBJECTS.items()
                if not (asked.without_plugin and interface == "pluggable")}
    print(f"medians of {asked.rounds} rounds of {STEPS} steps; load {os.getloadavg()[0]:.1f}\n"
          f"| program | blocks a step | {' | '.join(f'{subject}, ms' for subject in subjects)} | own / ours | least, most |\n"
          f"|{'---|' * (len(subjects) + 4)}", flush=True)
    for program in asked.programs:
        found = {subject: [] for subject in subjects}
        for _ in range(asked.rounds):
            for subject, interface in subjects.items():
                found[subject].append(measured(asked, program, interface))
        if len({run["peak"] for runs in found.values() for run in runs}) != 1:
            sys.exit(f"wrong: {program}: peaks differ")
        times = {subject: statistics.median(run["ms"] for run in runs) for subject, runs in found.items()}
        ratios = [own["ms"] / ours["ms"] for own, ours in zip(found["own"], found["ours"])]
        print(f"| {program} | {found['own'][0]['blocks']:,} | {' | '.join(f'{value:.2f}' for value in times.values())} | {statistics.median(ratios):.3f} "
              f"| {min(ratios):.3f}, {max(ratios):.3f} |", flush=True)
    return None


if __name__ == "__main__":
    main()
