"""Records what two training steps of a model in models.py allocate under PyTorch 1.13, on the CPU.

    cc -O2 -shared -fPIC allocations.c -o allocations.so
    LD_PRELOAD=$PWD/allocations.so python3 record.py allocations.so runs/gpt2.txt

The first line of the file is kept: how long a batch is and the model's config.json. Behind it a heading a phase and the
phase's allocations in bytes, and -n for the free of the n-th allocation (from 0) of the file. A step is that of the
Trainer of transformers: the batch ends behind the backward pass, gradients are clipped, AdamW runs as a loop, and
gradients are zeroed where they are.
"""

import ctypes
import gc
import json
import sys

import torch

import models


def optimizer_of(model):
    plain = {id(p) for m in model.modules() if isinstance(m, models.NORMS) for p in m.parameters()}
    groups = [{"params": [], "weight_decay": 0.01}, {"params": [], "weight_decay": 0.0}]
    for name, parameter in model.named_parameters():
        groups[id(parameter) in plain or "bias" in name]["params"].append(parameter)
    return torch.optim.AdamW(groups, lr=1e-3, foreach=False)


def loss_of(model, inputs):
    outputs = model(**inputs)
    return outputs.loss


def forward_and_backward(model, sizes, vocabulary, heading):
    inputs = {"input_ids": torch.randint(vocabulary, (sizes["batch"], sizes["tokens"]))}
    inputs["labels"] = torch.randint(vocabulary, (sizes["batch"], sizes.get("targets", sizes["tokens"])))
    loss = loss_of(model, inputs)
    heading("backward")
    loss.backward()
    return loss.detach()


def main(library_path, path):
    with open(path) as file:
        first_line = file.readline().rstrip("\n")
    sizes = json.loads(first_line)
    config = sizes["config"] | {"is_checkpointed": sizes.get("is_checkpointed", False)}
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gc.disable()
    model = models.FAMILIES[config["model_type"]](config)
    optimizer = optimizer_of(model)
    library = ctypes.CDLL(library_path)
    library.recording_begin(path.encode())
    library.recording_line(first_line.encode())
    for step in (1, 2):
        heading = lambda phase: library.recording_line(f"# step {step} {phase}".encode())
        heading("forward")
        loss = forward_and_backward(model, sizes, config["vocab_size"], heading)
        heading("optimizer step")
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        heading("between steps")
        model.zero_grad()
    library.recording_end()
    with open(path) as file:
        lines = [line.rstrip() for line in file]
    with open(path, "w") as file:
        file.write("\n".join(line for line in lines if line) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
