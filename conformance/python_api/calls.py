"""Functions of a script under dry_run, and models under estimate; prints what held."""
import json

import torch
import transformers

import ashlar_gpu

WIDTH = 1024


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + self.linear(x)


def train(batch, steps=3):
    model = torch.nn.Sequential(Block(WIDTH), Block(WIDTH)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        model(torch.randn(batch, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("trained", batch)


def main():
    fits = ashlar_gpu.dry_run(train, args=(256,), capacity="2GiB")
    fails = ashlar_gpu.dry_run(lambda: train(1 << 18), capacity="2GiB")
    config = transformers.AutoConfig.for_model("bert", num_hidden_layers=2)
    bert = transformers.BertForSequenceClassification(config)
    flags = {"batch": 2, "seq": 64}
    of_model, of_config = ashlar_gpu.estimate(bert, **flags), ashlar_gpu.estimate(config, **flags)
    of_module = ashlar_gpu.estimate(Block(8))
    print(json.dumps({
        "fits": fits.fits is True and fits.exit_code == 0 and fits.stdout == "trained 256\n",
        "its peak is PyTorch's": fits.processes[0].torch.devices[0].peak_reserved_bytes > 4 * 4 * 2 * WIDTH * WIDTH,
        "fails": fails.fits is False and fails.exit_code == 1 and "OutOfMemoryError" in fails.stderr,
        "its explanation": fails.explanation.verdict == "capacity" and fails.explanation.text.startswith("OUT OF MEMORY"),
        "model": of_model.model.architecture == "BertForSequenceClassification" and of_model.interval is not None,
        "its parameters": of_model.model.parameters == sum(p.numel() for p in bert.parameters()),
        "config": of_config.model.family == "bert",
        "module": of_module.model.parameters == 72,
    }))


if __name__ == "__main__":
    main()
